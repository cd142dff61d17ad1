// One gate on the rows of its inputs, forward and backward.
//
// A gate of arity n >= 2 is 2^(n-2) quads c0 + c1 q + c2 p + c3 p q in its last two inputs p and q, folded by the
// others, first input outermost: value = low + x (high - low).
#pragma once

#include "simd/rows.h"

namespace gatelight {
namespace GL_PATH {

template <int W>
GL_INLINE Row<W> quad_value(const float* c, const Row<W>& p, const Row<W>& q) {
  typedef Row<W> R;
  const R constant = madd(R::all(c[1]), q, R::all(c[0])), slope = madd(R::all(c[3]), q, R::all(c[2]));
  return madd(p, slope, constant);
}

// The same with its coefficients loaded at once: faster if the gate is a single quad and they are used once.
template <int W>
GL_INLINE Row<W> single_quad_value(const float* c, const Row<W>& p, const Row<W>& q) {
  const Quad<W> k(c);
  const Row<W> constant = madd(k.template all<1>(), q, k.template all<0>());
  const Row<W> slope = madd(k.template all<3>(), q, k.template all<2>());
  return madd(p, slope, constant);
}

// value[0] = the gate's output for inputs x; the differences high - low of each fold are left in `diff` (a node's
// children at 2i + 1 and 2i + 2) where backward wants them.
template <int N, int W>
GL_INLINE Row<W> gate_value(const float* c, const Row<W>* x, Row<W>* diff) {
  if constexpr (N == 1) return madd(x[0], Row<W>::all(c[1]), Row<W>::all(c[0]));
  else if constexpr (N == 2) return quad_value(c, x[0], x[1]);
  else {
    constexpr int QUADS = 1 << (N - 2);
    Row<W> v[QUADS];
    for (int m = 0; m < QUADS; m++) v[m] = quad_value(c + 4 * m, x[N - 2], x[N - 1]);
    // Level i has 2^i nodes; its input x[i] chooses between neighbors of the level below.
    for (int i = N - 3; i >= 0; i--)
      for (int m = 0; m < 1 << i; m++) {
        const Row<W> d = v[2 * m + 1] - v[2 * m];
        if (diff) diff[(1 << i) - 1 + m] = d;
        v[m] = madd(x[i], d, v[2 * m]);
      }
    return v[0];
  }
}

// s[k] = d out / d c[k] times the out-gradient o, sample by sample; g[i] = o times d out / d x[i].
template <int N, int W, bool NEED_X>
GL_INLINE void gate_bwd(const float* c, const Row<W>* x, const Row<W>& o, Row<W>* s, Row<W>* g) {
  typedef Row<W> R;
  if constexpr (N == 1) {
    s[0] = o;
    s[1] = o * x[0];
    if (NEED_X) g[0] = o * R::all(c[1]);
  } else {
    constexpr int QUADS = 1 << (N - 2);
    const R p = x[N - 2], q = x[N - 1];
    R w[QUADS];  // o times the product of the outer inputs, x or 1 - x, that leads to each quad
    w[0] = o;
    if constexpr (N > 2) {
      R diff[QUADS];
      if (NEED_X) gate_value<N, W>(c, x, diff);
      for (int i = 0; i < N - 2; i++) {
        if (NEED_X) {
          g[i] = w[0] * diff[(1 << i) - 1];
          for (int m = 1; m < 1 << i; m++) g[i] = madd(w[m], diff[(1 << i) - 1 + m], g[i]);
        }
        for (int m = (1 << i) - 1; m >= 0; m--) {
          const R upper = w[m] * x[i];
          w[2 * m] = w[m] - upper;
          w[2 * m + 1] = upper;
        }
      }
    }
    for (int m = 0; m < QUADS; m++) {
      s[4 * m] = w[m];
      s[4 * m + 1] = w[m] * q;
      s[4 * m + 2] = w[m] * p;
      s[4 * m + 3] = s[4 * m + 1] * p;
      if (NEED_X) {
        const R by_p = madd(R::all(c[4 * m + 3]), q, R::all(c[4 * m + 2]));
        const R by_q = madd(R::all(c[4 * m + 3]), p, R::all(c[4 * m + 1]));
        g[N - 2] = m ? madd(w[m], by_p, g[N - 2]) : w[m] * by_p;
        g[N - 1] = m ? madd(w[m], by_q, g[N - 1]) : w[m] * by_q;
      }
    }
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
