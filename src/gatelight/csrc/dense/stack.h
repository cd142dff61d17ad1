// Forward and backward of a run of layers for one tile.
#pragma once

#include "dense/gates.h"
#include "dense/pass.h"
#include "dense/saved.h"
#include "parametrize/coefficients.h"
#include "simd/pack.h"

namespace gatelight {
namespace GL_PATH {

// `cold`: the layer's input has not been used for so long that it is in no cache.
GL_INLINE Wires wires(const Layer& layer, int64_t first, bool cold) {
  return {layer.fanin + first * layer.arity, layer.gates - first, cold || layer.in > WIDE_LAYER, layer.linked};
}

template <int W>
inline void layer_fwd(const Layer& layer, const float* x, const Outputs& to) {
  if (layer.coefficients) {
    gates_fwd<W>(layer.arity, x, wires(layer, 0, false), layer.coefficients, layer.gates, to);
    return;
  }
  alignas(64) float coefficients[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_coefficients(layer, j, n, coefficients);
    gates_fwd<W>(layer.arity, x, wires(layer, j, false), coefficients, n, to.from(j, W));
  }
}

template <int W, bool NEED_X>
inline void layer_bwd(const Layer& layer, const float* x, bool cold, float* gx, const Gradient& from, float* group,
                      bool accumulate) {
  if (layer.coefficients) {
    gates_bwd<W, NEED_X>(layer.arity, x, gx, wires(layer, 0, cold), layer.coefficients, layer.gates, from,
                         layer.sums(group), accumulate);
    return;
  }
  alignas(64) float coefficients[BLOCK << MAX_ARITY], block_sums[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < layer.gates; j += BLOCK) {
    const int64_t n = layer.gates - j < BLOCK ? layer.gates - j : BLOCK;
    make_coefficients(layer, j, n, coefficients);
    gates_bwd<W, NEED_X>(layer.arity, x, gx, wires(layer, j, cold), coefficients, n,
                         Gradient{from.o + j * from.stride, from.stride, from.clear}, block_sums, false);
    make_grads(layer, j, n, block_sums, nullptr, 0, 0);
  }
}

// The input of the span's first layer: what the segment before has left, or the stack's input, packed into rows.
template <int W>
inline const float* first_rows(const Pass& pass, const Span& span, int64_t tile, float* rows) {
  if (span.from) return span.from + tile * pass.tile_floats();
  pack<W>(pass.x, tile * W, pass.samples(tile), pass.layers[0].in, Pad::Repeat, rows);
  return rows;
}

template <int W>
inline void forward_tile(const Pass& pass, const Span& span, int64_t tile, float* scratch) {
  const int samples = pass.samples(tile);
  const int64_t first = tile * W;
  const bool bf16 = pass.mode == GL_KEEP_BF16, keep = bf16 || pass.mode == GL_KEEP;
  float* other = scratch + pass.tile_floats();
  const float* x = first_rows<W>(pass, span, tile, scratch);
  for (int l = span.begin; l < span.end; l++) {
    const Layer& layer = pass.layers[l];
    float* to = x == scratch ? other : scratch;
    if (l == pass.count - 1 && samples == W) layer_fwd<W>(layer, x, {pass.out.data + first, pass.out.stride, nullptr});
    else if (l == pass.count - 1) {
      layer_fwd<W>(layer, x, {to, W, nullptr});
      unpack<W>(to, layer.gates, pass.out, first, samples);
    } else {
      const bool direct = pass.mode == GL_KEEP && samples == W;
      float* kept = direct ? reinterpret_cast<float*>(pass.saved_rows(l, tile)) : nullptr;
      const bool streams = direct && W > 1 && reinterpret_cast<uintptr_t>(kept) % 64 == 0;
      // Rows that outgrow the caches need not be in memory twice.
      if (direct && (!streams || layer.gates > WIDE_LAYER)) to = kept;
      else if (l == span.end - 1) to = span.to + tile * pass.tile_floats();
      layer_fwd<W>(layer, x, {to, W, streams ? kept : nullptr});
      if (keep && !direct) save_rows<W>(to, layer.gates, samples, bf16, pass.saved_rows(l, tile));
    }
    x = to;
  }
  finish_streams();
}

// A thread's memory for backward: gradients in two sets of rows, which are zero between tiles, then values.
template <int W>
inline void backward_tile(const Pass& pass, const Span& span, int64_t tile, float* group, bool accumulate,
                          float* scratch) {
  const int samples = pass.samples(tile);
  const int64_t first = tile * W, set = pass.tile_floats();
  const bool recompute = pass.mode == GL_RECOMPUTE, bf16 = pass.mode == GL_KEEP_BF16;
  float* const values = scratch + 2 * set;
  Gradient from = {span.to + tile * set, W, true};
  if (span.end == pass.count && samples == W && !pass.grad_out.sample_major) {
    from = {pass.grad_out.data + first, pass.grad_out.stride, false};
  } else if (span.end == pass.count) {
    from.o = scratch + set * (span.end % 2);
    pack<W>(pass.grad_out, first, samples, pass.layers[pass.count - 1].gates, Pad::Zero, from.o);
  }
  const float* inputs[SEGMENT];
  inputs[0] = first_rows<W>(pass, span, tile, values);
  if (recompute)
    for (int i = 1; span.begin + i < span.end; i++) {
      layer_fwd<W>(pass.layers[span.begin + i - 1], inputs[i - 1], {values + set * i, W, nullptr});
      inputs[i] = values + set * i;
    }
  for (int l = span.end - 1; l >= span.begin; l--) {
    const Layer& layer = pass.layers[l];
    const float* x = inputs[recompute ? l - span.begin : 0];
    if (!recompute && l > 0) {
      x = reinterpret_cast<const float*>(pass.saved_rows(l - 1, tile));
      if (samples < W || bf16) {
        load_rows<W>(pass.saved_rows(l - 1, tile), layer.in, samples, bf16, values + set);
        x = values + set;
      }
    }
    const bool cold = x != inputs[recompute ? l - span.begin : 0] && x != values + set;
    float* gx = scratch + set * (l % 2);
    if (l > 0 || pass.grad_x.data) layer_bwd<W, true>(layer, x, cold, gx, from, group, accumulate);
    else layer_bwd<W, false>(layer, x, cold, nullptr, from, group, accumulate);
    from = {gx, W, true};
  }
  const int64_t rows = pass.layers[span.begin].in;
  if (span.begin > 0) memcpy(span.to + tile * set, from.o, sizeof(float) * W * rows);
  else if (pass.grad_x.data) unpack<W>(from.o, rows, pass.grad_x, first, samples);
  else return;
  memset(from.o, 0, sizeof(float) * W * rows);
}

}  // namespace GL_PATH
}  // namespace gatelight
