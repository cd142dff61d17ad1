// Forward and backward of the whole stack for one tile.
#pragma once

#include "gates.h"
#include "params.h"
#include "tiles.h"

namespace gatelight {
namespace GL_PATH {

template <int W>
inline void layer_fwd(const Layer& layer, const float* x, float* out, int64_t out_stride) {
  if (layer.quads) {
    gates_fwd<W>(layer.arity, x, layer.fanin, layer.quads, layer.gates, out, out_stride);
    return;
  }
  alignas(64) float quads[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_quads(layer, j, n, quads);
    gates_fwd<W>(layer.arity, x, layer.fanin + j * layer.arity, quads, n, out + j * out_stride, out_stride);
  }
}

template <int W, bool NEED_X>
inline void layer_bwd(const Layer& layer, const float* x, float* gx, const Gradient& from, float* group,
                      bool accumulate) {
  if (layer.quads) {
    gates_bwd<W, NEED_X>(layer.arity, x, gx, layer.fanin, layer.quads, layer.gates, from, layer.sums(group),
                         accumulate);
    return;
  }
  alignas(64) float quads[BLOCK << MAX_ARITY], block_sums[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_quads(layer, j, n, quads);
    gates_bwd<W, NEED_X>(layer.arity, x, gx, layer.fanin + j * layer.arity, quads, n,
                         Gradient{from.o + j * from.stride, from.stride, from.clear}, block_sums, false);
    make_grads(layer, j, n, block_sums, nullptr, 0, 0);
  }
}

template <int W>
inline void forward_tile(const Pass& pass, int64_t tile, float* scratch) {
  const int samples = pass.samples(tile);
  const int64_t first = tile * W;
  const bool bf16 = pass.mode == GL_KEEP_BF16, keep = bf16 || pass.mode == GL_KEEP;
  float* other = scratch + pass.widest * W;
  pack<W>(pass.x, first, samples, pass.layers[0].in, Pad::Repeat, scratch, W, false);
  const float* x = scratch;
  for (int l = 0; l < pass.count; l++) {
    const Layer& layer = pass.layers[l];
    float* to = x == other ? scratch : other;
    if (l == pass.count - 1) {
      const bool direct = samples == W;
      if (direct) layer_fwd<W>(layer, x, pass.out.data + first, pass.out.stride);
      else {
        layer_fwd<W>(layer, x, to, W);
        unpack<W>(to, W, layer.gates, pass.out, first, samples);
      }
    } else if (pass.mode == GL_KEEP && samples == W) {
      to = reinterpret_cast<float*>(pass.saved_rows(l, tile));
      layer_fwd<W>(layer, x, to, W);
    } else {
      layer_fwd<W>(layer, x, to, W);
      if (keep) save_rows<W>(to, layer.gates, samples, bf16, pass.saved_rows(l, tile));
    }
    x = to;
  }
}

// A thread's memory for backward, in sets of rows as many as the widest layer has: two for gradients, which are zero
// between tiles, then values.
template <int W>
struct Rows {
  const Pass& pass;
  float* base;
  float* gradient(int i) const { return base + pass.widest * W * i; }
  float* value(int i) const { return base + pass.widest * W * (2 + i); }
};

// Runs the tile's forward up to the last segment and keeps the input of every segment but the first: checkpoint i is
// value set segment + 1 + i (those before are of the layers of a segment, and alternate here).
template <int W>
inline void checkpoint(const Pass& pass, int64_t tile, const Rows<W>& memory) {
  const int segments = (pass.count + pass.segment - 1) / pass.segment;
  if (segments < 2) return;
  const float* x = memory.value(0);
  pack<W>(pass.x, tile * W, pass.samples(tile), pass.layers[0].in, Pad::Repeat, memory.value(0), W, false);
  for (int l = 0; l < (segments - 1) * pass.segment; l++) {
    const bool boundary = (l + 1) % pass.segment == 0;
    float* to = boundary ? memory.value(pass.segment + (l + 1) / pass.segment) : memory.value(x == memory.value(0));
    layer_fwd<W>(pass.layers[l], x, to, W);
    x = to;
  }
}

// x[i] = the inputs of the segment's layer i.
template <int W>
inline void replay(const Pass& pass, int64_t tile, int segment, int end, const Rows<W>& memory, const float** x) {
  const int begin = segment * pass.segment;
  if (begin == 0) {
    pack<W>(pass.x, tile * W, pass.samples(tile), pass.layers[0].in, Pad::Repeat, memory.value(0), W, false);
    x[0] = memory.value(0);
  } else
    x[0] = memory.value(pass.segment + segment);
  for (int l = begin; l + 1 < end; l++) {
    float* to = memory.value(l - begin + 1);
    layer_fwd<W>(pass.layers[l], x[l - begin], to, W);
    x[l - begin + 1] = to;
  }
}

template <int W>
inline void backward_tile(const Pass& pass, int64_t tile, float* group, bool accumulate, float* scratch) {
  const int samples = pass.samples(tile);
  const int64_t first = tile * W;
  const bool recompute = pass.mode == GL_RECOMPUTE, bf16 = pass.mode == GL_KEEP_BF16;
  const Rows<W> memory = {pass, scratch};
  Gradient from = {pass.grad_out.data + first, pass.grad_out.stride, false};
  if (samples < W || pass.grad_out.sample_major) {
    from = {memory.gradient(pass.count % 2), W, true};
    pack<W>(pass.grad_out, first, samples, pass.layers[pass.count - 1].gates, Pad::Zero, from.o, W, false);
  }
  if (recompute) checkpoint<W>(pass, tile, memory);
  const float* inputs[64];
  for (int l = pass.count - 1; l >= 0; l--) {
    const Layer& layer = pass.layers[l];
    const int place = l % pass.segment;
    const float* x;
    if (recompute) {
      if (l == pass.count - 1 || place == pass.segment - 1)
        replay<W>(pass, tile, l / pass.segment, l + 1, memory, inputs);
      x = inputs[place];
    } else if (l == 0) {
      pack<W>(pass.x, first, samples, layer.in, Pad::Repeat, memory.value(0), W, false);
      x = memory.value(0);
    } else if (samples == W && !bf16) {
      x = reinterpret_cast<const float*>(pass.saved_rows(l - 1, tile));
    } else {
      load_rows<W>(pass.saved_rows(l - 1, tile), layer.in, samples, bf16, memory.value(0));
      x = memory.value(0);
    }
    float* gx = memory.gradient(l % 2);
    if (l > 0 || pass.grad_x.data) layer_bwd<W, true>(layer, x, gx, from, group, accumulate);
    else layer_bwd<W, false>(layer, x, nullptr, from, group, accumulate);
    from = {gx, W, true};
  }
  if (pass.grad_x.data) {
    unpack<W>(from.o, W, pass.layers[0].in, pass.grad_x, first, samples);
    for (int64_t i = 0; i < pass.layers[0].in; i++) Row<W>::all(0.0f).store(from.o + i * W);
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
