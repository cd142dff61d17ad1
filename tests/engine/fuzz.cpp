// Runs the engine on random circuits against plain loops, and on the same circuits with bytes changed, which it must
// refuse or run all the same. Built with the engine's sources under sanitizers by fuzz.sh; every array has its exact
// size, so that reading beyond one is noticed. Prints one line and returns 1 at the first difference.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gatelight_engine.h"

namespace {

typedef std::mt19937_64 Random;

int64_t below(Random& random, int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }

struct Arrays {
  int64_t inputs, features;
  std::vector<int32_t> fanin, output, group_start, bias, encoder_feature;
  std::vector<uint8_t> arity;
  std::vector<uint64_t> table;
  std::vector<float> threshold;
  int64_t width;
  int32_t kind;

  GlCircuit view() const {
    return {inputs,      static_cast<int64_t>(arity.size()), width,
            fanin.data(), arity.data(),                      table.data(),
            static_cast<int64_t>(output.size()),             output.data(),
            static_cast<int64_t>(bias.size()),               group_start.data(),
            bias.data(),  features,                          encoder_feature.data(),
            threshold.data(), kind};
  }
};

Arrays random_circuit(Random& random) {
  Arrays a;
  a.kind = static_cast<int32_t>(below(random, 3));
  a.inputs = below(random, 90);
  a.features = 1 + below(random, random() % 4 ? 100 : 3);
  a.width = below(random, 7);
  const int64_t gates = below(random, random() % 4 ? 60 : 400), reach = random() % 2 ? 8 : 1000;
  for (int64_t g = 0; g < gates; g++) {
    const int64_t net = a.inputs + g;
    const int arity = net == 0 ? 0 : static_cast<int>(below(random, a.width + 1));
    a.arity.push_back(static_cast<uint8_t>(arity));
    a.table.push_back(random() >> (64 - (1 << arity)));
    for (int64_t k = 0; k < a.width; k++)
      a.fanin.push_back(k < arity ? static_cast<int32_t>(net - 1 - below(random, std::min(net, reach))) : -1);
  }
  const int64_t nets = a.inputs + gates, outputs = nets ? below(random, random() % 3 ? 100 : 1500) : 0;
  for (int64_t i = 0; i < outputs; i++) a.output.push_back(static_cast<int32_t>(below(random, nets)));
  const int64_t classes = 1 + below(random, 12);
  a.group_start.push_back(0);
  for (int64_t c = 1; c <= classes; c++) {
    const int64_t before = a.group_start.back();
    const int64_t size = c == classes ? outputs - before : below(random, 2 * (outputs - before) / (classes - c + 1) + 1);
    a.group_start.push_back(static_cast<int32_t>(std::min(before + size, outputs)));
    a.bias.push_back(static_cast<int32_t>(below(random, 200)) - 100);
  }
  for (int64_t i = 0; i < a.inputs; i++) {
    a.encoder_feature.push_back(static_cast<int32_t>(below(random, a.features)));
    const float values[] = {0.5f, -1.0f, 0.0f, 1.0f, static_cast<float>(below(random, 256)) / 255.0f};
    a.threshold.push_back(values[below(random, 5)]);
  }
  return a;
}

// Changes bytes somewhere in the circuit.
void mutate(Arrays& a, Random& random) {
  const auto change = [&](auto& array) {
    if (array.empty()) return;
    char* bytes = reinterpret_cast<char*>(array.data());
    const int64_t size = static_cast<int64_t>(array.size() * sizeof(array[0]));
    bytes[below(random, size)] = static_cast<char>(random());
  };
  for (int64_t n = 1 + below(random, 3); n > 0; n--) switch (below(random, 7)) {
      case 0: change(a.fanin); break;
      case 1: change(a.arity); break;
      case 2: change(a.table); break;
      case 3: change(a.output); break;
      case 4: change(a.group_start); break;
      case 5: change(a.encoder_feature); break;
      default: change(a.threshold);
    }
}

// The bits of every net, one sample at a time: what the circuit means.
std::vector<uint8_t> nets_of(const Arrays& a, std::vector<uint8_t> nets) {
  for (size_t g = 0; g < a.arity.size(); g++) {
    int entry = 0;
    for (int k = 0; k < a.arity[g]; k++) entry = 2 * entry + nets[a.fanin[g * a.width + k]];
    nets.push_back(a.table[g] >> entry & 1);
  }
  return nets;
}

bool fail(const char* what, int64_t number, const std::string& simd, int64_t batch) {
  std::printf("case %lld: %s differs on %s for %lld samples\n", static_cast<long long>(number), what, simd.c_str(),
              static_cast<long long>(batch));
  return false;
}

template <class T>
bool check_samples(void* engine, const Arrays& a, Random& random, int64_t number, const std::string& simd, int64_t batch) {
  const int64_t stride = a.features;
  const float one = a.kind == GL_FEATURE_BYTES ? 255.0f : 1.0f;
  const std::unique_ptr<T[]> x(new T[batch * stride]);
  for (int64_t i = 0; i < batch * stride; i++) {
    const uint8_t any = static_cast<uint8_t>(random() % 3 ? random() : 255 * (random() & 1));
    const uint8_t byte = a.kind == GL_FEATURE_BITS ? any & 1 : any;
    x[i] = sizeof(T) == 1 ? static_cast<T>(byte) : static_cast<T>(static_cast<float>(byte) / one);
  }
  const int64_t classes = static_cast<int64_t>(a.bias.size());
  const std::unique_ptr<int32_t[]> scores(new int32_t[batch * classes]);
  const std::unique_ptr<int64_t[]> labels(new int64_t[batch]);
  std::memset(scores.get(), 0x5A, 4 * batch * classes);
  const int threads = 1 + static_cast<int>(random() % 3);
  const int64_t bytes = stride * static_cast<int64_t>(sizeof(T));
  if (gl_engine_run(engine, sizeof(T) == 1 ? 0 : 1, x.get(), bytes, batch, threads, scores.get(), labels.get()))
    return fail("status", number, simd, batch);
  for (int64_t i = 0; i < batch; i++) {
    std::vector<uint8_t> nets;
    for (int64_t b = 0; b < a.inputs; b++) {
      const T value = x[i * stride + a.encoder_feature[b]];
      const float number = sizeof(T) == 1 ? static_cast<float>(value) / one : static_cast<float>(value);
      nets.push_back(number > a.threshold[b]);
    }
    nets = nets_of(a, nets);
    int64_t best = 0, label = 0;
    for (int64_t c = 0; c < classes; c++) {
      int64_t score = a.bias[c];
      for (int64_t o = a.group_start[c]; o < a.group_start[c + 1]; o++) score += nets[a.output[o]];
      if (score != scores[i * classes + c]) return fail("a score", number, simd, batch);
      if (c == 0 || score > best) best = score, label = c;
    }
    if (label != labels[i]) return fail("a label", number, simd, batch);
  }
  return true;
}

bool check_bits(void* engine, const Arrays& a, Random& random, int64_t number, const std::string& simd, int64_t words) {
  const int64_t outputs = static_cast<int64_t>(a.output.size());
  const std::unique_ptr<uint64_t[]> in(new uint64_t[a.inputs * words]), out(new uint64_t[outputs * words]);
  for (int64_t i = 0; i < a.inputs * words; i++) in[i] = random();
  if (gl_engine_bits(engine, in.get(), words, 2, out.get())) return fail("status", number, simd, 64 * words);
  for (int64_t i = 0; i < 64 * words; i += 1 + below(random, 40)) {
    std::vector<uint8_t> nets;
    for (int64_t b = 0; b < a.inputs; b++) nets.push_back(in[b * words + i / 64] >> (i % 64) & 1);
    nets = nets_of(a, nets);
    for (int64_t o = 0; o < outputs; o++)
      if ((out[o * words + i / 64] >> (i % 64) & 1) != nets[a.output[o]])
        return fail("an output", number, simd, 64 * words);
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const int64_t cases = count > 1 ? std::atoll(arguments[1]) : 1000, first = count > 2 ? std::atoll(arguments[2]) : 0;
  const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 130, 512, 513};
  int64_t refused = 0, mutated = 0;
  for (int64_t number = first; number < first + cases; number++) {
    Random random(number);
    Arrays a = random_circuit(random);
    if (number % 2) mutate(a, random), mutated++;
    std::istringstream names(gl_simd_available());
    for (std::string simd; names >> simd;) {
      const GlCircuit view = a.view();
      int32_t status = 0;
      void* engine = gl_engine_new(&view, simd.c_str(), random() % 4 > 0, &status);
      if (!engine) {
        if (number % 2 == 0) return !fail("acceptance", number, simd, 0);
        refused++;
        break;
      }
      const int64_t batch = sizes[below(random, number % 16 < 2 ? 9 : 6)];
      const bool fine = check_samples<uint8_t>(engine, a, random, number, simd, batch) &&
                        check_samples<float>(engine, a, random, number, simd, batch) &&
                        check_bits(engine, a, random, number, simd, below(random, 12));
      gl_engine_free(engine);
      if (!fine) return 1;
    }
  }
  std::printf("%lld circuits agree, %lld of %lld mutated ones refused\n", static_cast<long long>(cases - refused),
              static_cast<long long>(refused), static_cast<long long>(mutated));
  return 0;
}
