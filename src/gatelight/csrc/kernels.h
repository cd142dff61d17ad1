// What each SIMD path offers to the rest of the library: functions that work on one tile or one run of gates.
#pragma once

#include <cstdint>

#include "gatelight.h"

namespace gatelight {

constexpr int MAX_ARITY = 6;
constexpr int TILE = 16;
// Layers whose activations are computed again before gradients go back through them; at least 2. Tests set it lower.
#if !defined(GL_SEGMENT)
#define GL_SEGMENT 8
#endif
constexpr int SEGMENT = GL_SEGMENT;
// Gates whose coefficients are made at a time: the largest arity's then take 16 KiB.
constexpr int BLOCK = 64;

struct Layer : GlLayer {
  const float* quads;  // coefficients [gates, 2^arity]; null: made from theta on the fly (batches of one tile)
  int64_t offset;      // where this layer's sums start in a segment's buffer, in floats, a multiple of 16
  float* first_sums;   // the first group's sums, in grad_theta itself where their sizes agree

  float* sums(float* group) const { return group ? group + offset : first_sums; }
};

// One forward or backward pass over the stack. A tile is `width` samples (16, or 1 for a batch of one); inside a tile,
// activations and their gradients are rows of `width` floats.
struct Pass {
  const Layer* layers;
  int count;
  int64_t batch;
  int width;
  int mode;
  int64_t widest;  // most rows of any layer or of the input
  GlMatrix x, out, grad_out, grad_x;
  char* saved;  // keep: hidden activations by layer, then tile, then row; rows of the last tile cut to its samples

  // Five rows more than the widest layer has: where a layer's size is a multiple of a page, a value and its gradient
  // would lie in the same few lines of the first cache.
  int64_t tile_floats() const { return (widest + 5) * width; }
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

// Layers [begin, end) and what lies on either side: rows of all tiles, pass.tile_floats() for each tile. `from` is null
// where begin is the first layer; `to` is where forward leaves the outputs (null after the last layer) and backward
// finds the out-gradients (unless it starts at the last layer) and leaves those of the inputs (unless it ends at the
// first).
struct Span {
  int begin, end;
  const float* from;
  float* to;
};

// Floats of scratch a thread needs.
inline int64_t forward_scratch(const Pass& p) { return 2 * p.tile_floats(); }
inline int64_t backward_scratch(const Pass& p) {
  const int values = p.mode != GL_RECOMPUTE ? 2 : p.count < SEGMENT ? p.count : SEGMENT;
  return p.tile_floats() * (2 + values);
}

struct Kernels {
  const char* name;
  void (*forward_tile)(const Pass& pass, const Span& span, int64_t tile, float* scratch);
  // Adds the tile's coefficient gradients to a group's sums (or sets them; null is the first group), or writes
  // grad_theta where coefficients are fused.
  void (*backward_tile)(const Pass& pass, const Span& span, int64_t tile, float* group, bool accumulate,
                        float* scratch);
  // Coefficients of `gates` gates from `first` on.
  void (*quads)(const Layer& layer, int64_t first, int64_t gates, float* quads);
  // grad_theta of the same from the first group's sums and those of `more` groups, group_stride apart, added in order.
  void (*grads)(const Layer& layer, int64_t first, int64_t gates, const float* sums, const float* others,
                int64_t group_stride, int more);
  void (*tables)(int kind, int arity, const float* theta, int64_t gates, float* table);
  void (*tables_bwd)(int kind, int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta);
};

extern const Kernels kernels_base;
#if defined(GL_HAVE_X86)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

}  // namespace gatelight
