// Runs the convolution kernels on random chains against plain loops in double precision. Built under sanitizers by
// sanitize.sh; prints one line and returns 1 at the first difference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gatelight.h"

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

struct Layer {
  GlConv shape;
  std::vector<int32_t> fanin;
  Floats table, grad;

  int64_t side(int64_t in) const { return ((in + 2 * shape.padding - shape.kernel) / shape.stride + 1) / shape.pool; }
  int64_t high() const { return side(shape.height); }
  int64_t wide() const { return side(shape.width); }
  int gates() const {
    int total = 0, level = 1;
    for (int d = 0; d < shape.depth; d++, level *= shape.arity) total += level;
    return total;
  }
  int leaves() const { return static_cast<int>(std::pow(shape.arity, shape.depth) + 0.5); }
};

// One tree at one position for one sample; x and grad are [channels, height, width] of that sample.
struct Tree {
  const Layer& layer;
  const float* table;
  const int32_t* fanin;
  int64_t top, left;

  int64_t pixel(int leaf) const {
    const GlConv& s = layer.shape;
    const int window = s.kernel * s.kernel, place = fanin[leaf] % window;
    const int64_t y = top + place / s.kernel, x = left + place % s.kernel;
    return y < 0 || x < 0 || y >= s.height || x >= s.width ? -1 : (fanin[leaf] / window * s.height + y) * s.width + x;
  }

  double value(int node, const double* x) const {
    if (node >= layer.gates()) return pixel(node - layer.gates()) < 0 ? 0 : x[pixel(node - layer.gates())];
    double in[6], total = 0;
    for (int i = 0; i < layer.shape.arity; i++) in[i] = value(layer.shape.arity * node + 1 + i, x);
    for (int k = 0; k < 1 << layer.shape.arity; k++) total += table[(node << layer.shape.arity) + k] * weight(k, in, -1);
    return total;
  }

  double weight(int k, const double* in, int skip) const {
    double w = 1;
    for (int i = 0; i < layer.shape.arity; i++) {
      const bool bit = k >> (layer.shape.arity - 1 - i) & 1;
      w *= i == skip ? (bit ? 1 : -1) : (bit ? in[i] : 1 - in[i]);
    }
    return w;
  }

  void backward(int node, double o, const double* x, double* grad_x, double* grad_table) const {
    const int n = layer.shape.arity;
    if (node >= layer.gates()) {
      if (pixel(node - layer.gates()) >= 0) grad_x[pixel(node - layer.gates())] += o;
      return;
    }
    double in[6];
    for (int i = 0; i < n; i++) in[i] = value(n * node + 1 + i, x);
    for (int k = 0; k < 1 << n; k++) grad_table[(node << n) + k] += o * weight(k, in, -1);
    for (int i = 0; i < n; i++) {
      double by = 0;
      for (int k = 0; k < 1 << n; k++) by += table[(node << n) + k] * weight(k, in, i);
      backward(n * node + 1 + i, o * by, x, grad_x, grad_table);
    }
  }
};

// Calls visit(tree, output) for the position of each pooling window that has the largest value.
template <class F>
static void for_winners(const Layer& l, const double* x, F visit) {
  const int entries = l.gates() << l.shape.arity;
  for (int64_t o = 0, at = 0; o < l.shape.out_channels; o++)
    for (int64_t y = 0; y < l.high(); y++)
      for (int64_t xx = 0; xx < l.wide(); xx++, at++) {
        double most = 0;
        int64_t top = 0, left = 0;
        for (int p = 0; p < l.shape.pool * l.shape.pool; p++) {
          const Tree t{l, l.table.data() + o * entries, l.fanin.data() + o * l.leaves(),
                       (y * l.shape.pool + p / l.shape.pool) * l.shape.stride - l.shape.padding,
                       (xx * l.shape.pool + p % l.shape.pool) * l.shape.stride - l.shape.padding};
          const double v = t.value(0, x);
          if (p == 0 || v > most) most = v, top = t.top, left = t.left;
        }
        const Tree winner{l, l.table.data() + o * entries, l.fanin.data() + o * l.leaves(), top, left};
        visit(winner, at, most, o);
      }
}

static bool close(const char* what, const Floats& got, const Doubles& want) {
  double largest = 0, worst = 0;
  for (double v : want) largest = std::fmax(largest, std::fabs(v));
  for (size_t i = 0; i < want.size(); i++) {
    const double difference = std::fabs(got[i] - want[i]);
    worst = difference > worst || std::isnan(got[i]) ? difference : worst;
  }
  if (worst <= 2e-5 * largest + 1e-6) return true;
  std::printf("%s differs by %g, largest value %g\n", what, worst, largest);
  return false;
}

static std::vector<Layer> random_chain(std::mt19937& random) {
  auto pick = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::uniform_real_distribution<float> unit;
  const int all[][2] = {{2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {4, 1}, {6, 1}};
  std::vector<const int*> trees;
  for (const int* tree : all)
    if (gl_conv_supported(tree[0], tree[1], 2)) trees.push_back(tree);
  std::vector<Layer> chain;
  int64_t channels = pick(1, 3), height = pick(5, 9), width = pick(5, 9);
  for (int count = pick(1, 3); count > 0; count--) {
    Layer l;
    const int* tree = trees[pick(0, static_cast<int>(trees.size()) - 1)];
    l.shape = {channels, height, width, pick(1, 3), pick(0, 1), pick(1, 2), pick(1, 2), pick(1, 4), tree[1], tree[0],
               GL_TABLE, nullptr, nullptr, nullptr};
    if (l.shape.kernel > std::min(height, width) + 2 * l.shape.padding || l.high() < 1 || l.wide() < 1) break;
    const int inputs = static_cast<int>(channels) * l.shape.kernel * l.shape.kernel;
    for (int64_t i = 0; i < l.shape.out_channels * l.leaves(); i++) l.fanin.push_back(pick(0, inputs - 1));
    for (int64_t i = 0; i < l.shape.out_channels * l.gates() << l.shape.arity; i++) l.table.push_back(unit(random));
    l.grad.assign(l.table.size(), NAN);
    channels = l.shape.out_channels, height = l.high(), width = l.wide();
    chain.push_back(l);
  }
  return chain;
}

struct Case {
  std::vector<Layer> chain;
  int64_t batch, in, out;
  Floats x, grad_out;  // feature-major

  Case(std::vector<Layer> layers, int64_t samples, std::mt19937& random) : chain(layers), batch(samples) {
    const GlConv& first = chain[0].shape;
    in = first.channels * first.height * first.width;
    out = chain.back().shape.out_channels * chain.back().high() * chain.back().wide();
    std::uniform_real_distribution<float> unit;
    x.resize(in * batch), grad_out.resize(out * batch);
    for (float& v : x) v = unit(random);
    for (float& v : grad_out) v = unit(random) - 0.5f;
  }
};

struct Expected {
  Doubles out, grad_x;
  std::vector<Doubles> grads;

  explicit Expected(const Case& c) : out(c.out * c.batch), grad_x(c.in * c.batch) {
    for (const Layer& l : c.chain) grads.emplace_back(l.table.size());
    for (int64_t s = 0; s < c.batch; s++) add_sample(c, s);
  }

  void add_sample(const Case& c, int64_t s) {
    std::vector<Doubles> values(1, Doubles(c.in));
    for (int64_t i = 0; i < c.in; i++) values[0][i] = c.x[i * c.batch + s];
    for (const Layer& l : c.chain) {
      Doubles next(l.shape.out_channels * l.high() * l.wide());
      for_winners(l, values.back().data(), [&](const Tree&, int64_t at, double v, int64_t) { next[at] = v; });
      values.push_back(next);
    }
    Doubles grad(c.out);
    for (int64_t i = 0; i < c.out; i++) {
      out[i * c.batch + s] = values.back()[i];
      grad[i] = c.grad_out[i * c.batch + s];
    }
    for (size_t l = c.chain.size(); l-- > 0;) {
      Doubles below(values[l].size());
      const int entries = c.chain[l].gates() << c.chain[l].shape.arity;
      for_winners(c.chain[l], values[l].data(), [&](const Tree& t, int64_t at, double, int64_t o) {
        t.backward(0, grad[at], values[l].data(), below.data(), grads[l].data() + o * entries);
      });
      grad = below;
    }
    for (int64_t i = 0; i < c.in; i++) grad_x[i * c.batch + s] = grad[i];
  }
};

// Forward and backward; all gradients are left in `bits`.
static bool run(Case& c, const Expected& e, bool sample_major, Floats* bits) {
  Floats turned(c.x.size());
  for (int64_t i = 0; i < c.in; i++)
    for (int64_t s = 0; s < c.batch; s++) turned[s * c.in + i] = c.x[i * c.batch + s];
  const GlMatrix mx = sample_major ? GlMatrix{turned.data(), c.in, 1} : GlMatrix{c.x.data(), c.batch, 0};
  Floats out(c.out * c.batch, NAN), grad_x(c.in * c.batch, NAN);
  std::vector<GlConv> layers;
  for (Layer& l : c.chain) {
    GlConv shape = l.shape;
    shape.fanin = l.fanin.data(), shape.theta = l.table.data(), shape.grad_theta = l.grad.data();
    layers.push_back(shape);
  }
  const int count = static_cast<int>(layers.size());
  std::vector<char> save(gl_conv_save_bytes(layers.data(), count, c.batch));
  const GlMatrix mo{out.data(), c.batch, 0}, mg{c.grad_out.data(), c.batch, 0}, mgx{grad_x.data(), c.batch, 0};
  if (gl_conv_fwd(layers.data(), count, c.batch, mx, mo, nullptr) || !close("inference", out, e.out) ||
      gl_conv_fwd(layers.data(), count, c.batch, mx, mo, save.data()) ||
      gl_conv_bwd(layers.data(), count, c.batch, mx, mg, mgx, save.data())) {
    std::printf("a call failed\n");
    return false;
  }
  bool ok = close("out", out, e.out) && close("grad_x", grad_x, e.grad_x);
  for (size_t l = 0; ok && l < c.chain.size(); l++) ok = close("grad_theta", c.chain[l].grad, e.grads[l]);
  *bits = grad_x;
  for (const Layer& l : c.chain) bits->insert(bits->end(), l.grad.begin(), l.grad.end());
  return ok;
}

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 20;
  std::istringstream names(gl_simd_available());
  std::vector<std::string> paths;
  for (std::string name; names >> name;) paths.push_back(name);
  int done = 0;
  for (int seed = 0; seed < cases; seed++) {
    std::mt19937 random(seed);
    const std::vector<Layer> chain = random_chain(random);
    if (chain.empty()) continue;
    done++;
    const int64_t batches[] = {1, 5, 16, 17, 40};
    Case c(chain, batches[seed % 5], random);
    const Expected e(c);
    for (const std::string& path : paths) {
      gl_simd_select(path.c_str());
      Floats first, bits;
      for (int threads : {1, 2, 5}) {
        gl_set_threads(threads);
        const bool ok = run(c, e, threads == 2, &bits);
        if (first.empty()) first = bits;
        if (!ok || std::memcmp(first.data(), bits.data(), sizeof(float) * bits.size())) {
          std::printf("path %s seed %d threads %d: wrong, or other bits than one thread\n", gl_simd(), seed, threads);
          return 1;
        }
      }
    }
  }
  gl_stop_threads();
  std::printf("%d chains of trees passed on %s\n", done, gl_simd_available());
  return 0;
}
