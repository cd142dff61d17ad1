// Forward and backward of the whole stack for one tile.
#pragma once

#include "gates.h"
#include "params.h"
#include "tiles.h"

namespace gatelight {
namespace GL_PATH {

template <int W, int STRIDE, bool LINES>
inline void layer_fwd(const Layer& layer, const float* x, float* out, int64_t out_stride) {
  if (layer.quads) {
    gates_fwd<W, STRIDE, LINES>(layer.arity, x, layer.fanin, layer.quads, layer.gates, out, out_stride);
    return;
  }
  alignas(64) float quads[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_quads(layer, j, n, quads);
    gates_fwd<W, STRIDE, LINES>(layer.arity, x, layer.fanin + j * layer.arity, quads, n, out + j * out_stride,
                                out_stride);
  }
}

template <int W, bool NEED_X>
inline int64_t layer_bwd(const Layer& layer, float* lines, const float* o, int64_t o_stride, float* group,
                         bool accumulate, const Feed& feed) {
  if (layer.quads)
    return gates_bwd<W, NEED_X>(layer.arity, lines, layer.fanin, layer.quads, layer.gates, o, o_stride,
                                layer.sums(group), accumulate, feed);
  alignas(64) float quads[BLOCK << MAX_ARITY], block_sums[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_quads(layer, j, n, quads);
    gates_bwd<W, NEED_X>(layer.arity, lines, layer.fanin + j * layer.arity, quads, n, o + j * o_stride, o_stride,
                         block_sums, false, Feed{});
    make_grads(layer, j, n, block_sums, nullptr, 0, 0);
  }
  return 0;
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
      if (direct) layer_fwd<W, W, false>(layer, x, pass.out.data + first, pass.out.stride);
      else {
        layer_fwd<W, W, false>(layer, x, to, W);
        unpack<W>(to, W, layer.gates, pass.out, first, samples);
      }
    } else if (pass.mode == GL_KEEP && samples == W) {
      to = reinterpret_cast<float*>(pass.saved_rows(l, tile));
      layer_fwd<W, W, false>(layer, x, to, W);
    } else {
      layer_fwd<W, W, false>(layer, x, to, W);
      if (keep) save_rows<W>(to, layer.gates, samples, bf16, pass.saved_rows(l, tile));
    }
    x = to;
  }
}

// A thread's memory for backward, in rows of the widest layer: lines, then plain rows.
template <int W>
struct Lines {
  const Pass& pass;
  float* base;
  int count;
  float* line(int i) const { return base + pass.widest * 2 * W * i; }
  float* plain(int i) const { return line(count) + pass.widest * W * i; }
};

// Runs the tile's forward up to the last segment and keeps the input of every segment but the first: checkpoint i is
// plain row set 3 + i (0 holds gradients, 1 and 2 alternate).
template <int W>
inline void checkpoint(const Pass& pass, int64_t tile, const Lines<W>& memory) {
  const int segments = (pass.count + pass.segment - 1) / pass.segment;
  if (segments < 2) return;
  const float* x = memory.plain(1);
  pack<W>(pass.x, tile * W, pass.samples(tile), pass.layers[0].in, Pad::Repeat, memory.plain(1), W, false);
  for (int l = 0; l < (segments - 1) * pass.segment; l++) {
    const bool boundary = (l + 1) % pass.segment == 0;
    float* to = boundary ? memory.plain(2 + (l + 1) / pass.segment) : memory.plain(x == memory.plain(1) ? 2 : 1);
    layer_fwd<W, W, false>(pass.layers[l], x, to, W);
    x = to;
  }
}

// Lines 0, 1, ... = the inputs of the segment's layers, with zero gradients.
template <int W>
inline void replay(const Pass& pass, int64_t tile, int segment, int end, const Lines<W>& memory) {
  const int begin = segment * pass.segment;
  if (begin == 0)
    pack<W>(pass.x, tile * W, pass.samples(tile), pass.layers[0].in, Pad::Repeat, memory.line(0), 2 * W, true);
  else
    load_rows<W>(reinterpret_cast<char*>(memory.plain(2 + segment)), 0, pass.layers[begin].in, W, false,
                 memory.line(0));
  for (int l = begin; l + 1 < end; l++)
    layer_fwd<W, 2 * W, true>(pass.layers[l], memory.line(l - begin), memory.line(l - begin + 1), 2 * W);
}

template <int W>
inline void backward_tile(const Pass& pass, int64_t tile, float* group, bool accumulate, float* scratch) {
  const int samples = pass.samples(tile);
  const int64_t first = tile * W;
  const bool recompute = pass.mode == GL_RECOMPUTE;
  const Lines<W> memory = {pass, scratch, recompute ? pass.segment : 2};
  const float* o = pass.grad_out.data + first;
  int64_t o_stride = pass.grad_out.stride;
  if (samples < W || pass.grad_out.sample_major) {
    // Where a layer above would have left it.
    float* to = recompute ? memory.plain(0) : memory.line(pass.count % 2) + W;
    o_stride = recompute ? W : 2 * W;
    pack<W>(pass.grad_out, first, samples, pass.layers[pass.count - 1].gates, Pad::Zero, to, o_stride, false);
    o = to;
  }
  if (recompute) checkpoint<W>(pass, tile, memory);
  int64_t fed = 0;
  for (int l = pass.count - 1; l >= 0; l--) {
    const Layer& layer = pass.layers[l];
    const int place = recompute ? l % pass.segment : l % 2;
    float* lines = memory.line(place);
    if (recompute) {
      if (l == pass.count - 1 || place == pass.segment - 1) replay<W>(pass, tile, l / pass.segment, l + 1, memory);
    } else if (l == 0)
      pack<W>(pass.x, first, samples, layer.in, Pad::Repeat, lines, 2 * W, true);
    else
      load_rows<W>(pass.saved_rows(l - 1, tile), fed, layer.in, samples, pass.mode == GL_KEEP_BF16, lines);
    Feed feed = {};
    if (pass.mode == GL_KEEP && samples == W && l > 1)
      feed = {reinterpret_cast<float*>(pass.saved_rows(l - 2, tile)), memory.line((l - 1) % 2), pass.layers[l - 1].in};
    if (l > 0 || pass.grad_x.data)
      fed = layer_bwd<W, true>(layer, lines, o, o_stride, group, accumulate, feed);
    else
      layer_bwd<W, false>(layer, lines, o, o_stride, group, accumulate, feed);
    o = lines + W;
    o_stride = 2 * W;
    if (recompute && place == 0 && l > 0) {
      // The next segment reuses the lines: carry the gradient over.
      for (int64_t i = 0; i < layer.in; i++) Row<W>::load(o + i * 2 * W).store(memory.plain(0) + i * W);
      o = memory.plain(0);
      o_stride = W;
    }
  }
  if (pass.grad_x.data) unpack<W>(o, o_stride, pass.layers[0].in, pass.grad_x, first, samples);
}

}  // namespace GL_PATH
}  // namespace gatelight
