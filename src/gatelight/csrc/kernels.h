// What each SIMD path offers to the rest of the library: a table of functions that work on one tile or one run of gates.
#pragma once

#include <cstdint>

#include "gatelight.h"

namespace gatelight {

constexpr int MAX_ARITY = 6;
constexpr int TILE = 16;
// Gates whose coefficients are made at a time: the largest arity's then take 16 KiB.
constexpr int BLOCK = 64;

struct Layer : GlLayer {
  const float* quads;  // coefficients [gates, 2^arity]; null: made from theta on the fly (batches of one tile)
  int64_t offset;      // where this layer's sums start in a buffer for the whole stack, in floats, a multiple of 16
};

// One forward or backward pass over the stack. A tile is `width` samples (16, or 1 for a batch of one); inside a tile,
// activations are rows of `width` floats, and backward keeps value and gradient side by side: [value | gradient].
struct Pass {
  const Layer* layers;
  int count;
  int64_t batch;
  int width;
  int mode;
  int segment;     // recompute: layers between two checkpoints of a tile
  int64_t widest;  // most rows of any layer or of the input
  GlMatrix x, out, grad_out, grad_x;
  char* saved;  // keep: hidden activations, layer after layer, tile after tile, rows of the last tile cut to its samples

  int64_t tiles() const { return (batch + width - 1) / width; }
  int samples(int64_t tile) const {
    const int64_t left = batch - tile * width;
    return left < width ? (int)left : width;
  }
  int value_bytes() const { return mode == GL_KEEP_BF16 ? 2 : 4; }
  // All tiles before the last are full, so a layer takes gates * batch values; layers start on a cache line.
  int64_t saved_values(int layer) const { return (layers[layer].gates * batch + 31) / 32 * 32; }
  char* saved_rows(int layer, int64_t tile) const {
    int64_t before = layers[layer].gates * tile * width;
    for (int i = 0; i < layer; i++) before += saved_values(i);
    return saved + before * value_bytes();
  }
};

// Floats of scratch a thread needs.
inline int64_t forward_scratch(const Pass& p) { return 2 * p.widest * p.width; }
inline int64_t backward_scratch(const Pass& p) {
  const int64_t row = p.width, line = 2 * p.width;
  if (p.mode != GL_RECOMPUTE) return p.widest * (2 * line + row);
  const int64_t checkpoints = (p.count + p.segment - 1) / p.segment;
  return p.widest * (p.segment * line + (checkpoints + 3) * row);
}

struct Kernels {
  const char* name;
  void (*forward_tile)(const Pass& pass, int64_t tile, float* scratch);
  // Adds the tile's coefficient gradients to `sums` (or sets them), or writes grad_theta where coefficients are fused.
  void (*backward_tile)(const Pass& pass, int64_t tile, float* sums, bool accumulate, float* scratch);
  // Coefficients of `gates` gates from `first` on.
  void (*quads)(const Layer& layer, int64_t first, int64_t gates, float* quads);
  // grad_theta of the same from the sums of all groups, added in order; group g's are at sums + g * group_stride.
  void (*grads)(const Layer& layer, int64_t first, int64_t gates, const float* sums, int64_t group_stride, int groups);
  void (*tables)(int kind, int arity, const float* theta, int64_t gates, float* table);
  void (*tables_bwd)(int kind, int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta);
};

extern const Kernels kernels_base;
#if defined(GL_HAVE_X86)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

}  // namespace gatelight
