// Trees of gates over the windows of an image, for one tile of 16 samples: forward and backward.
//
// A tree of arity N and depth D is stored from the root: gate i reads the nodes N i + 1 ... N i + N, and nodes from
// GATES on are its leaves. Each of P positions (the pooling window) is evaluated in registers; the largest value is
// the output. Forward keeps that value and, in two bits, which position won; backward takes the leaves of the winner,
// sample by sample, and goes through the tree once.
#pragma once

#include "conv/kernels.h"
#include "dense/gate.h"

#if GL_LANES == 16
#include <immintrin.h>
#endif

namespace gatelight {
namespace GL_PATH {

constexpr int W = TILE;
typedef Row<W> R;

// One truth value for each sample.
#if GL_LANES == 16
struct Pick {
  __mmask16 m;
};
// Whether v replaces `best`: it is larger or not a number. The first of equals stays, and so does a NaN.
GL_INLINE Pick beats(const R& v, const R& best) {
  const __mmask16 number = _mm512_cmp_ps_mask((__m512)best.v[0], (__m512)best.v[0], _CMP_ORD_Q);
  return {_mm512_mask_cmp_ps_mask(number, (__m512)v.v[0], (__m512)best.v[0], _CMP_NLE_UQ)};
}
GL_INLINE R pick(Pick p, const R& yes, const R& no) {
  return R{{(vf)_mm512_mask_blend_ps(p.m, (__m512)no.v[0], (__m512)yes.v[0])}};
}
GL_INLINE R only_where(Pick p, const R& a) { return R{{(vf)_mm512_maskz_mov_ps(p.m, (__m512)a.v[0])}}; }
GL_INLINE uint32_t to_bits(Pick p) { return p.m; }
GL_INLINE Pick from_bits(uint32_t bits) { return {(__mmask16)bits}; }
#else
struct Pick {
  vi m[R::PARTS];
};
GL_INLINE Pick beats(const R& v, const R& best) {
  Pick p;
  for (int i = 0; i < R::PARTS; i++) p.m[i] = ~(v.v[i] <= best.v[i]) & (best.v[i] == best.v[i]);
  return p;
}
GL_INLINE R pick(const Pick& p, const R& yes, const R& no) {
  R r;
  for (int i = 0; i < R::PARTS; i++) r.v[i] = select(p.m[i], yes.v[i], no.v[i]);
  return r;
}
GL_INLINE R only_where(const Pick& p, const R& a) {
  R r;
  for (int i = 0; i < R::PARTS; i++) r.v[i] = (vf)(p.m[i] & (vi)a.v[i]);
  return r;
}
GL_INLINE uint32_t to_bits(const Pick& p) {
  uint32_t bits = 0;
  for (int i = 0; i < R::PARTS; i++)
#if defined(__AVX2__)
    bits |= (uint32_t)__builtin_ia32_movmskps256((vf)p.m[i]) << (i * LANES);
#else
    for (int k = 0; k < LANES; k++) bits |= (uint32_t)(p.m[i][k] & 1) << (i * LANES + k);
#endif
  return bits;
}
GL_INLINE Pick from_bits(uint32_t bits) {
  Pick p;
  for (int i = 0; i < R::PARTS; i++)
    p.m[i] = -(((int32_t)(bits >> (i * LANES)) >> lane_numbers(Lanes())) & 1);
  return p;
}
#endif

constexpr int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

template <int ARITY, int DEPTH>
struct Tree {
  static constexpr int N = ARITY, LEAVES = power(N, DEPTH), GATES = (LEAVES - 1) / (N - 1), ENTRIES = 1 << N;

  // Where the leaves of one output channel are: leaf i at position m is the row values[i] + shift[i][m], its gradient
  // the row gradients[i] + shift[i][m].
  struct Leaves {
    const float* values[LEAVES];
    float* gradients[LEAVES];
    const int32_t* shift[LEAVES];

    GL_INLINE Leaves(const Conv& conv, int64_t channel, const float* x, float* grad_x) {
      const int32_t window = conv.kernel * conv.kernel;
      for (int i = 0; i < LEAVES; i++) {
        const int32_t at = conv.layer.fanin[channel * LEAVES + i];
        const int64_t plane = at / window * conv.plane_in() * W;
        values[i] = x + plane;
        gradients[i] = grad_x ? grad_x + plane : nullptr;
        shift[i] = conv.shifts + at % window * conv.positions();
      }
    }
    GL_INLINE R at(int i, int64_t m) const { return R::load(values[i] + shift[i][m]); }
    GL_INLINE float* gradient(int i, int64_t m) const { return gradients[i] + shift[i][m]; }
  };

  // The value of a node at P neighboring positions; the gates' coefficients are read once for all of them.
  template <int NODE, int P>
  static GL_INLINE void value(const float* c, const Leaves& l, int64_t m, R* out) {
    if constexpr (NODE >= GATES) {
      for (int p = 0; p < P; p++) out[p] = l.at(NODE - GATES, m + p);
    } else {
      R child[N][P];
      children<NODE, P, 0>(c, l, m, child);
#pragma GCC unroll 4
      for (int p = 0; p < P; p++) {
        R in[N];
        for (int k = 0; k < N; k++) in[k] = child[k][p];
        out[p] = gate_value<N, W>(c + NODE * ENTRIES, in, nullptr);
      }
    }
  }
  template <int NODE, int P, int K>
  static GL_INLINE void children(const float* c, const Leaves& l, int64_t m, R (*child)[P]) {
    if constexpr (K < N) {
      value<N * NODE + 1 + K, P>(c, l, m, child[K]);
      children<NODE, P, K + 1>(c, l, m, child);
    }
  }

  // node[i] = the value of gate i, from the leaves node[GATES ...]. The root's is not needed.
  template <int NODE>
  static GL_INLINE void values(const float* c, R* node) {
    if constexpr (NODE > 0) {
      node[NODE] = gate_value<N, W>(c + NODE * ENTRIES, node + N * NODE + 1, nullptr);
      values<NODE - 1>(c, node);
    }
  }

  // grad[i] = gradient of node i, root first; adds the gradients of the coefficients, sample by sample, to sums.
  template <int NODE, bool NEED_X>
  static GL_INLINE void backward(const float* c, const R* node, R* grad, R* sums) {
    if constexpr (NODE < GATES) {
      R s[ENTRIES], g[N];
      constexpr bool need = NEED_X || N * NODE + 1 < GATES;
      gate_bwd<N, W, need>(c + NODE * ENTRIES, node + N * NODE + 1, grad[NODE], s, g);
      for (int k = 0; k < ENTRIES; k++) sums[NODE * ENTRIES + k] = sums[NODE * ENTRIES + k] + s[k];
      if (need)
        for (int k = 0; k < N; k++) grad[N * NODE + 1 + k] = g[k];
      backward<NODE + 1, NEED_X>(c, node, grad, sums);
    }
  }

  // The largest of four values, the first of equals; `winners` gets the two bits of its number, 16 samples each.
  static GL_INLINE R largest(const R* v, uint32_t* winners) {
    const Pick second = beats(v[1], v[0]);
    const R front = pick(second, v[1], v[0]);
    const Pick third = beats(v[2], front);
    const R middle = pick(third, v[2], front);
    const Pick fourth = beats(v[3], middle);
    if (winners) {
      const uint32_t two = to_bits(third), three = to_bits(fourth);
      *winners = ((to_bits(second) & ~two) | three) | (two | three) << 16;
    }
    return pick(fourth, v[3], middle);
  }

  template <int P>
  static void fwd(const Conv& conv, const float* x, float* out, int64_t out_plane, int64_t out_stride,
                  uint32_t* winners) {
    const int64_t outputs = conv.plane_out();
    for (int64_t o = 0; o < conv.out_channels; o++) {
      const Leaves l(conv, o, x, nullptr);
      const float* c = conv.layer.coefficients + o * GATES * ENTRIES;
      float* row = out + o * out_plane * out_stride;
      for (int64_t i = 0; i < outputs; i++, row += out_stride) {
        R v[P];
        value<0, P>(c, l, i * P, v);
        if constexpr (P == 1) v[0].store(row);
        else largest(v, winners ? winners++ : nullptr).store(row);
      }
    }
  }

  template <int P, bool NEED_X>
  static void bwd(const Conv& conv, const float* x, const float* grad_out, int64_t out_plane, const uint32_t* winners,
                  float* grad_x, float* group, bool accumulate) {
    constexpr int SUMS = GATES * ENTRIES, PADDED = (SUMS + 15) / 16 * 16;
    const int64_t outputs = conv.plane_out();
    float* sums_of_layer = conv.layer.sums(group);
    for (int64_t o = 0; o < conv.out_channels; o++) {
      const Leaves l(conv, o, x, grad_x);
      const float* c = conv.layer.coefficients + o * SUMS;
      const float* g = grad_out + o * out_plane * W;
      R sums[PADDED];
      for (int k = 0; k < PADDED; k++) sums[k] = R::all(0.0f);
      for (int64_t i = 0; i < outputs; i++, g += W) {
        R node[GATES + LEAVES], grad[GATES + LEAVES];
        Pick won[P];
        if constexpr (P > 1) {
          const uint32_t low = *winners & 0xffff, high = *winners >> 16;
          winners++;
          won[0] = from_bits(~(low | high));
          won[1] = from_bits(low & ~high);
          won[2] = from_bits(high & ~low);
          won[3] = from_bits(low & high);
        }
        for (int k = 0; k < LEAVES; k++) {
          node[GATES + k] = l.at(k, i * P);
          for (int p = 1; p < P; p++) node[GATES + k] = pick(won[p], l.at(k, i * P + p), node[GATES + k]);
        }
        grad[0] = R::load(g);
        values<GATES - 1>(c, node);
        backward<0, NEED_X>(c, node, grad, sums);
        if (NEED_X)
          for (int k = 0; k < LEAVES; k++)
            for (int p = 0; p < P; p++) {
              float* to = l.gradient(k, i * P + p);
              // A masked addition would become a masked store, which is slow.
              (R::load(to) + (P == 1 ? grad[GATES + k] : only_where(won[p], grad[GATES + k]))).store(to);
            }
      }
      alignas(64) float total[PADDED];
      for (int k = 0; k < PADDED; k += 16) add_sums(sums + k, total + k, false);
      float* to = sums_of_layer + o * SUMS;
      for (int k = 0; k < SUMS; k++) to[k] = accumulate ? to[k] + total[k] : total[k];
    }
  }
};

template <class T>
inline void tree_fwd(const Conv& conv, const float* x, float* out, int64_t out_plane, int64_t out_stride,
                     uint32_t* winners) {
  if (conv.pool == 1) T::template fwd<1>(conv, x, out, out_plane, out_stride, winners);
  else T::template fwd<4>(conv, x, out, out_plane, out_stride, winners);
}

template <class T>
inline void tree_bwd(const Conv& conv, const float* x, const float* grad_out, int64_t out_plane,
                     const uint32_t* winners, float* grad_x, float* group, bool accumulate) {
  if (conv.pool == 1 && grad_x)
    T::template bwd<1, true>(conv, x, grad_out, out_plane, winners, grad_x, group, accumulate);
  else if (conv.pool == 1)
    T::template bwd<1, false>(conv, x, grad_out, out_plane, winners, nullptr, group, accumulate);
  else if (grad_x) T::template bwd<4, true>(conv, x, grad_out, out_plane, winners, grad_x, group, accumulate);
  else T::template bwd<4, false>(conv, x, grad_out, out_plane, winners, nullptr, group, accumulate);
}

}  // namespace GL_PATH
}  // namespace gatelight
