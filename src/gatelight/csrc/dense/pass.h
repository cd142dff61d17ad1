// A pass over a stack of layers, and the part of it that a kernel works on.
#pragma once

#include "dense/layer.h"

namespace gatelight {

constexpr int WIDE_TILE = 32;  // samples of a tile if layers are processed cluster by cluster
// Rows more than a layer has: where their number is a multiple of a page, a value and its gradient would lie in the
// same few lines of L1.
constexpr int SPARE_ROWS = 5;
// Layers whose activations are recomputed before gradients go back through them; at least 2. Tests set it lower.
#if !defined(GL_SEGMENT)
#define GL_SEGMENT 8
#endif
constexpr int SEGMENT = GL_SEGMENT;

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

  int64_t tile_floats() const { return (widest + SPARE_ROWS) * width; }
  int64_t tiles() const { return (batch + width - 1) / width; }
  int samples(int64_t tile) const {
    const int64_t left = batch - tile * width;
    return left < width ? (int)left : width;
  }
  // Tiles of stacks that are processed cluster by cluster. The rows of the last one are padded to TILE or to WIDE_TILE.
  int64_t wide_tiles() const { return (batch + WIDE_TILE - 1) / WIDE_TILE; }
  int wide_samples(int64_t first) const { return batch - first < WIDE_TILE ? (int)(batch - first) : WIDE_TILE; }
  int64_t padded_batch() const { return (batch + TILE - 1) / TILE * TILE; }
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

}  // namespace gatelight
