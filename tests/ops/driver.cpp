// Runs the native kernels on random stacks against plain loops in double precision. Built with the kernels' sources
// under sanitizers by sanitize.sh; prints one line and returns 1 at the first difference.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gatelight.h"

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

struct Layer {
  int64_t in, gates;
  int arity, kind;
  std::vector<int32_t> fanin;
  Floats theta, grad;
  int64_t parameters() const { return int64_t(1) << (kind == GL_SOFTMAX ? 1 << arity : arity); }
};

struct Case {
  int64_t batch;
  std::vector<Layer> layers;
  Floats x, grad_out;  // feature-major, tight
};

static bool straight_through(int kind) { return kind == GL_SIN_ST || kind == GL_SIGMOID_ST || kind == GL_LINEAR_ST; }

static double value(int kind, double t) {
  switch (kind) {
    case GL_SIN: return 0.5 + 0.5 * std::sin(t);
    case GL_SIN_ST: return 0.5 + 0.5 * std::sin(std::fmin(std::fmax(t, -M_PI / 2), M_PI / 2));
    case GL_SIGMOID:
    case GL_SIGMOID_ST: return 1 / (1 + std::exp(-t));
    case GL_LINEAR_ST: return std::fmin(std::fmax(t, 0), 1);
    default: return t;
  }
}

static double slope(int kind, double t) {
  if (kind == GL_SIN) return 0.5 * std::cos(t);
  if (kind == GL_SIGMOID) return value(kind, t) * (1 - value(kind, t));
  return 1;
}

static Doubles softmax(const float* theta, int functions) {
  Doubles p(functions);
  double total = 0;
  for (int i = 0; i < functions; i++) total += p[i] = std::exp((double)theta[i]);
  for (double& v : p) v /= total;
  return p;
}

static Doubles table(const Layer& layer, int64_t gate) {
  const int entries = 1 << layer.arity;
  const float* theta = layer.theta.data() + gate * layer.parameters();
  Doubles t(entries);
  if (layer.kind == GL_SOFTMAX) {
    const Doubles p = softmax(theta, 1 << entries);
    for (int i = 0; i < 1 << entries; i++)
      for (int k = 0; k < entries; k++) t[k] += (i >> (entries - 1 - k) & 1) * p[i];
  } else
    for (int k = 0; k < entries; k++) t[k] = value(layer.kind, theta[k]);
  return t;
}

// The weight of entry k for given inputs, without input `skip` (and then with the sign of its derivative).
static double weight(int arity, int k, const double* x, int skip = -1) {
  double w = 1;
  for (int i = 0; i < arity; i++) {
    const bool bit = k >> (arity - 1 - i) & 1;
    w *= i == skip ? (bit ? 1 : -1) : (bit ? x[i] : 1 - x[i]);
  }
  return w;
}

struct Expected {
  Doubles out, grad_x;
  std::vector<Doubles> grads;
};

static Expected expect(const Case& c) {
  const int64_t b = c.batch;
  std::vector<Doubles> rows = {Doubles(c.x.begin(), c.x.end())};
  std::vector<std::vector<Doubles>> tables;
  for (const Layer& layer : c.layers) {
    Doubles out(layer.gates * b);
    tables.emplace_back();
    for (int64_t j = 0; j < layer.gates; j++) {
      tables.back().push_back(table(layer, j));
      for (int64_t s = 0; s < b; s++) {
        double x[6];
        for (int i = 0; i < layer.arity; i++) x[i] = rows.back()[layer.fanin[j * layer.arity + i] * b + s];
        for (int k = 0; k < 1 << layer.arity; k++) out[j * b + s] += tables.back()[j][k] * weight(layer.arity, k, x);
      }
    }
    rows.push_back(out);
  }
  Expected e{rows.back(), {}, std::vector<Doubles>(c.layers.size())};
  Doubles grad(c.grad_out.begin(), c.grad_out.end());
  for (int l = (int)c.layers.size() - 1; l >= 0; l--) {
    const Layer& layer = c.layers[l];
    const int entries = 1 << layer.arity;
    Doubles below(layer.in * b);
    for (int64_t j = 0; j < layer.gates; j++) {
      Doubles gt(entries);
      for (int64_t s = 0; s < b; s++) {
        double x[6];
        for (int i = 0; i < layer.arity; i++) x[i] = rows[l][layer.fanin[j * layer.arity + i] * b + s];
        for (int k = 0; k < entries; k++) {
          gt[k] += grad[j * b + s] * weight(layer.arity, k, x);
          for (int i = 0; i < layer.arity; i++)
            below[layer.fanin[j * layer.arity + i] * b + s] +=
                grad[j * b + s] * tables[l][j][k] * weight(layer.arity, k, x, i);
        }
      }
      const float* theta = layer.theta.data() + j * layer.parameters();
      if (layer.kind == GL_SOFTMAX) {
        const Doubles p = softmax(theta, 1 << entries);
        double mean = 0;
        for (int k = 0; k < entries; k++) mean += gt[k] * tables[l][j][k];
        for (int i = 0; i < 1 << entries; i++) {
          double h = 0;
          for (int k = 0; k < entries; k++) h += (i >> (entries - 1 - k) & 1) * gt[k];
          e.grads[l].push_back(p[i] * (h - mean));
        }
      } else
        for (int k = 0; k < entries; k++)
          e.grads[l].push_back(gt[k] * (straight_through(layer.kind) ? 1 : slope(layer.kind, theta[k])));
    }
    grad = below;
  }
  e.grad_x = grad;
  return e;
}

// Connections inside clusters of GL_CLUSTER inputs, the last of which takes what is left over; some clusters have no
// gates. Gates come by cluster, or in any order.
static void add_clustered(Layer& layer, bool listed, std::mt19937& random) {
  auto pick = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  const int64_t clusters = layer.in < GL_CLUSTER ? 1 : layer.in / GL_CLUSTER;
  for (int64_t j = 0; j < layer.gates; j++) {
    const int64_t k = listed ? j * clusters / layer.gates : pick(0, clusters - 1);
    const int64_t end = k == clusters - 1 ? layer.in : (k + 1) * GL_CLUSTER;
    for (int i = 0; i < layer.arity; i++) layer.fanin.push_back((int32_t)pick(k * GL_CLUSTER, end - 1));
  }
}

// Most gates read first what the gate before them reads last.
static void add_linked(Layer& layer, std::mt19937& random) {
  auto pick = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  int32_t last = 0;
  for (int64_t j = 0; j < layer.gates; j++) {
    layer.fanin.push_back(pick(0, 29) ? last : (int32_t)pick(0, layer.in - 1));
    last = pick(0, 29) ? (int32_t)pick(0, layer.in - 1) : layer.fanin.back();
    layer.fanin.push_back(last);
  }
}

static Case random_case(std::mt19937& random) {
  auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> unit;
  const int batches[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 100, 130};
  Case c{batches[pick(0, 11)], {}, {}, {}};
  int64_t width = pick(1, 40);
  const bool wide = pick(0, 2) == 0;  // layers in pairs, the second of which reads inside clusters of the first
  for (int64_t i = 0; i < width * c.batch; i++) c.x.push_back(unit(random));
  bool second = pick(0, 3) == 0;
  for (int l = pick(wide ? 2 : 1, wide ? 4 : 12); l > 0; l--) {
    Layer layer{width, pick(1, 70), pick(1, 6), pick(0, 6), {}, {}, {}};
    if (wide) layer.arity = pick(1, 3), layer.gates = l == 1 ? pick(1, 700) : pick(32 * GL_CLUSTER, 34 * GL_CLUSTER);
    if (layer.kind == GL_SOFTMAX) layer.arity = pick(1, wide ? 2 : 3), layer.gates = wide ? layer.gates : pick(1, 20);
    const bool linked = !(wide && second) && layer.kind != GL_SOFTMAX && pick(0, 2) == 0;
    if (linked) layer.arity = 2, layer.gates = wide ? layer.gates : pick(65, 150);
    if (wide && second) add_clustered(layer, pick(0, 1) == 0, random);
    else if (linked) add_linked(layer, random);
    else
      for (int64_t i = 0; i < layer.gates * layer.arity; i++) layer.fanin.push_back(pick(0, (int)width - 1));
    second = !second;
    for (int64_t i = 0; i < layer.gates * layer.parameters(); i++)
      layer.theta.push_back(layer.kind == GL_TABLE ? unit(random) : normal(random));
    layer.grad.assign(layer.theta.size(), NAN);
    width = layer.gates;
    c.layers.push_back(layer);
  }
  for (int64_t i = 0; i < width * c.batch; i++) c.grad_out.push_back(normal(random));
  return c;
}

static bool close(const char* what, const float* got, const Doubles& want) {
  double largest = 0, worst = 0;
  for (double v : want) largest = std::fmax(largest, std::fabs(v));
  for (size_t i = 0; i < want.size(); i++) {
    const double difference = std::fabs(got[i] - want[i]);
    worst = difference > worst || std::isnan(got[i]) ? difference : worst;
  }
  if (worst <= 2e-5 * largest + 1e-7) return true;
  std::printf("%s differs by %g, largest value %g\n", what, worst, largest);
  return false;
}

// The matrix in sample-major order, or as it is with rows `gap` floats further apart than they need to be.
static GlMatrix arrange(const Floats& tight, int64_t rows, int64_t batch, bool sample_major, int64_t gap,
                        Floats& store) {
  const int64_t stride = (sample_major ? rows : batch) + gap, lines = sample_major ? batch : rows;
  store.assign(stride * (lines - 1) + (sample_major ? rows : batch), NAN);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t s = 0; s < batch; s++)
      store[sample_major ? s * stride + i : i * stride + s] = tight.empty() ? NAN : tight[i * batch + s];
  return {store.data(), stride, sample_major};
}

static bool run(Case c, const Expected& e, int mode, int threads, bool sample_major, int64_t gap, Floats* bits) {
  const int64_t b = c.batch, rows_in = c.layers[0].in, rows_out = c.layers.back().gates;
  gl_set_threads(threads);
  std::vector<GlLayer> layers;
  for (Layer& l : c.layers)
    layers.push_back({l.in, l.gates, l.arity, l.kind, l.fanin.data(), l.theta.data(), l.grad.data()});
  const int count = (int)layers.size();
  Floats x, out, go, gx;
  const GlMatrix mx = arrange(c.x, rows_in, b, sample_major, gap, x), mo = arrange({}, rows_out, b, false, gap, out),
                 mg = arrange(c.grad_out, rows_out, b, sample_major, gap, go),
                 mgx = arrange({}, rows_in, b, false, 0, gx);
  std::vector<char> save(gl_save_bytes(layers.data(), count, b, mode));
  void* saved = mode == GL_RECOMPUTE && gap ? nullptr : save.data();  // recomputing works with and without
  if (gl_stack_fwd(layers.data(), count, b, mode, mx, mo, saved) ||
      gl_stack_bwd(layers.data(), count, b, mode, mx, mg, mgx, saved)) {
    std::printf("a call failed\n");
    return false;
  }
  Floats tight;
  for (int64_t i = 0; i < rows_out; i++)
    for (int64_t s = 0; s < b; s++) tight.push_back(out[i * mo.stride + s]);
  bool ok = close("out", tight.data(), e.out);
  if (mode != GL_KEEP_BF16) {
    ok = ok && close("grad_x", gx.data(), e.grad_x);
    for (size_t l = 0; ok && l < c.layers.size(); l++) ok = close("grad_theta", c.layers[l].grad.data(), e.grads[l]);
  }
  *bits = tight;
  bits->insert(bits->end(), gx.begin(), gx.end());
  for (const Layer& l : c.layers) bits->insert(bits->end(), l.grad.begin(), l.grad.end());
  return ok;
}

// Every path has every map, for the arities that it takes and no others.
static bool has_maps() {
  const Floats theta(256, 0.5f);
  Floats table(256), grad(256);
  for (int kind = -1; kind <= GL_SOFTMAX + 1; kind++)
    for (int arity = 0; arity <= 7; arity++) {
      const bool there = kind >= GL_TABLE && kind <= GL_SOFTMAX;
      const bool takes = there && arity >= 1 && arity <= (kind == GL_SOFTMAX ? 3 : 6);
      const int status = takes ? GL_OK : GL_BAD_ARGUMENT;
      if (gl_table_fwd(kind, arity, 1, theta.data(), table.data()) == status &&
          gl_table_bwd(kind, arity, 1, theta.data(), table.data(), grad.data()) == status)
        continue;
      std::printf("path %s: kind %d of arity %d should %s\n", gl_simd(), kind, arity, takes ? "run" : "be refused");
      return false;
    }
  return true;
}

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 20;
  std::vector<std::string> paths;
  std::istringstream names(gl_simd_available());
  for (std::string name; names >> name;) paths.push_back(name);
  for (const std::string& path : paths)
    if (gl_simd_select(path.c_str()) || !has_maps()) return 1;
  for (int seed = 0; seed < cases; seed++) {
    std::mt19937 random(seed);
    const Case c = random_case(random);
    const Expected e = expect(c);
    const int mode = seed % 3;
    for (const std::string& path : paths) {
      gl_simd_select(path.c_str());
      Floats first, bits;
      for (int threads : {1, 2, 5}) {
        const bool ok = run(c, e, mode, threads, threads == 2, threads == 5 ? 3 : 0, &bits);
        if (first.empty()) first = bits;
        if (!ok || std::memcmp(first.data(), bits.data(), sizeof(float) * bits.size())) {
          std::printf("path %s seed %d mode %d threads %d: wrong, or other bits than one thread\n", gl_simd(), seed,
                      mode, threads);
          return 1;
        }
      }
    }
  }
  // Two callers at once: one gets the pool, the other runs alone.
  bool ok[2] = {true, true};
  auto caller = [&](int i) {
    for (int seed = 0; seed < cases / 2; seed++) {
      std::mt19937 random(1000 * i + seed);
      Floats bits;
      const Case c = random_case(random);
      ok[i] = run(c, expect(c), GL_KEEP, 2, false, 0, &bits) && ok[i];
    }
  };
  std::thread a(caller, 0), b(caller, 1);
  a.join();
  b.join();
  gl_stop_threads();
  if (!ok[0] || !ok[1]) return 1;
  std::printf("%d cases passed on %s\n", cases, gl_simd_available());
  return 0;
}
