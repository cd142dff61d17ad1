// theta -> table -> coefficients, and the gradients back, for runs of gates.
//
// The gate kernels read each table with its last two inputs in polynomial form ("quads"): entries t0 t1 t2 t3 become
//     c0 = t0   c1 = t1 - t0   c2 = t2 - t0   c3 = t3 - t2 - t1 + t0     f(p, q) = c0 + c1 q + c2 p + c3 p q
// (arity 1: c0 = t0, c1 = t1 - t0). Their sums come back in the same form and the transposed map makes table gradients.
#pragma once

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "vecmath.h"

namespace gatelight {
namespace GL_PATH {

// dst[i] = f(a[i], b[i]) for n floats, the tail through a padded copy.
template <class F>
GL_INLINE void map2(const float* a, const float* b, int64_t n, float* dst, F f) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) store(dst + i, f(load(a + i), load(b + i)));
  if (i < n) {
    float u[LANES] = {0}, v[LANES] = {0}, w[LANES];
    memcpy(u, a + i, sizeof(float) * (n - i));
    memcpy(v, b + i, sizeof(float) * (n - i));
    store(w, f(load(u), load(v)));
    memcpy(dst + i, w, sizeof(float) * (n - i));
  }
}
template <class F>
GL_INLINE void map(const float* a, int64_t n, float* dst, F f) {
  map2(a, a, n, dst, [&](vf x, vf) { return f(x); });
}

GL_INLINE vf absolute(vf x) { return (vf)((vi)x & 0x7fffffff); }
GL_INLINE vf sigmoid(vf x) {
  const vf e = exp_nonpositive(-absolute(x));
  const vf larger = 1.0f / (1.0f + e);  // the value for |x|
  return select(x < 0.0f, e * larger, larger);
}
GL_INLINE vf clamp(vf x, float least, float most) {
  x = select(x < least, splat(least), x);
  return select(x > most, splat(most), x);
}

// Whether sin's vector routine covers every one of n values (false for infinities and NaN too).
inline bool within_sin_limit(const float* theta, int64_t n) {
  vi beyond = {};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) beyond |= ~(absolute(load(theta + i)) <= SIN_LIMIT);
  bool ok = true;
  for (int k = 0; k < LANES; k++) ok &= !beyond[k];
  for (; i < n; i++) ok &= __builtin_fabsf(theta[i]) <= SIN_LIMIT;
  return ok;
}

// Entry by entry: value of the estimator for n parameters.
inline void estimate(int kind, const float* theta, int64_t n, float* value) {
  switch (kind) {
    case GL_SIN:
      map(theta, n, value, [](vf x) { return 0.5f + 0.5f * sin_reduced(reduce_by_pi(x)); });
      if (!within_sin_limit(theta, n))
        for (int64_t i = 0; i < n; i++)
          if (!(__builtin_fabsf(theta[i]) <= SIN_LIMIT)) value[i] = (float)(0.5 + 0.5 * ::sin((double)theta[i]));
      break;
    case GL_SIN_ST:
      map(theta, n, value, [](vf x) {
        return 0.5f + 0.5f * sin_reduced(Reduced{clamp(x, -1.57079633f, 1.57079633f), vi{}});
      });
      break;
    case GL_SIGMOID:
    case GL_SIGMOID_ST:
      map(theta, n, value, [](vf x) { return sigmoid(x); });
      break;
    case GL_LINEAR_ST:
      map(theta, n, value, [](vf x) { return clamp(x, 0.0f, 1.0f); });
      break;
    default:
      memcpy(value, theta, sizeof(float) * n);
  }
}

// grad_theta = grad_value * d value / d theta, with derivative 1 for the straight-through kinds.
inline void estimate_bwd(int kind, const float* theta, const float* grad, int64_t n, float* grad_theta) {
  switch (kind) {
    case GL_SIN:
      map2(theta, grad, n, grad_theta, [](vf x, vf g) { return 0.5f * g * cos_reduced(reduce_by_pi(x)); });
      if (!within_sin_limit(theta, n))
        for (int64_t i = 0; i < n; i++)
          if (!(__builtin_fabsf(theta[i]) <= SIN_LIMIT))
            grad_theta[i] = (float)(0.5 * grad[i] * ::cos((double)theta[i]));
      break;
    case GL_SIGMOID:
      map2(theta, grad, n, grad_theta, [](vf x, vf g) {
        const vf e = exp_nonpositive(-absolute(x));  // s (1 - s) = e / (1 + e)^2, even in x
        return g * e / ((1.0f + e) * (1.0f + e));
      });
      break;
    default:
      memcpy(grad_theta, grad, sizeof(float) * n);
  }
}

// columns[c] lane r = rows[r][c]; lanes beyond the last row repeat it.
GL_INLINE void load_columns(const float* rows, int64_t stride, int count, int64_t columns, vf* out) {
  const float* row[LANES];
  for (int r = 0; r < LANES; r++) row[r] = rows + stride * (r < count ? r : count - 1);
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    vf v[LANES];
    for (int r = 0; r < LANES; r++) v[r] = load(row[r] + c);
    transpose(v);
    for (int r = 0; r < LANES; r++) out[c + r] = v[r];
  }
  for (; c < columns; c++) {
    float lanes[LANES];
    for (int r = 0; r < LANES; r++) lanes[r] = row[r][c];
    out[c] = load(lanes);
  }
}

// The inverse of load_columns for the first `count` rows.
GL_INLINE void store_columns(const vf* in, int64_t columns, float* rows, int64_t stride, int count) {
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    vf v[LANES];
    for (int r = 0; r < LANES; r++) v[r] = in[c + r];
    transpose(v);
    for (int r = 0; r < count; r++) store(rows + stride * r + c, v[r]);
  }
  for (; c < columns; c++)
    for (int r = 0; r < count; r++) rows[stride * r + c] = in[c][r];
}

// OP for LANES gates, a gate in each lane: probabilities P = softmax(theta) over all functions, left unnormalised in e,
// and t_k = sum of P_i over the functions i whose bit ENTRIES - 1 - k is set. Returns 1 / sum e.
template <int ENTRIES>
GL_INLINE vf softmax_lanes(const float* theta, int count, vf* e, vf* table) {
  constexpr int FUNCTIONS = 1 << ENTRIES;
  load_columns(theta, FUNCTIONS, count, FUNCTIONS, e);
  vf most = e[0];
  for (int i = 1; i < FUNCTIONS; i++) most = select(e[i] > most, e[i], most);
  for (int i = 0; i < FUNCTIONS; i++) e[i] = exp_nonpositive(e[i] - most);
  // Entry k reads the top bit of what is left: its sum is the upper half's, then the halves are added together.
  vf fold[FUNCTIONS];
  for (int i = 0; i < FUNCTIONS; i++) fold[i] = e[i];
  for (int k = 0; k < ENTRIES; k++) {
    const int half = FUNCTIONS >> (k + 1);
    table[k] = fold[half];
    for (int i = 1; i < half; i++) table[k] += fold[half + i];
    for (int i = 0; i < half; i++) fold[i] += fold[half + i];
  }
  const vf scale = 1.0f / fold[0];
  for (int k = 0; k < ENTRIES; k++) table[k] *= scale;
  return scale;
}

template <int ENTRIES>
inline void softmax_table(const float* theta, int64_t gates, float* value) {
  vf e[1 << ENTRIES], table[ENTRIES];
  for (int64_t g = 0; g < gates; g += LANES) {
    const int count = gates - g < LANES ? (int)(gates - g) : LANES;
    softmax_lanes<ENTRIES>(theta + (g << ENTRIES), count, e, table);
    store_columns(table, ENTRIES, value + g * ENTRIES, ENTRIES, count);
  }
}

// grad_theta_i = P_i (h_i - sum_j P_j h_j), h_i = sum of grad_k over the entries k that function i sets.
template <int ENTRIES>
inline void softmax_bwd(const float* theta, const float* grad, int64_t gates, float* grad_theta) {
  constexpr int FUNCTIONS = 1 << ENTRIES;
  vf e[FUNCTIONS], h[FUNCTIONS], table[ENTRIES], g_table[ENTRIES];
  for (int64_t g = 0; g < gates; g += LANES) {
    const int count = gates - g < LANES ? (int)(gates - g) : LANES;
    const vf scale = softmax_lanes<ENTRIES>(theta + (g << ENTRIES), count, e, table);
    load_columns(grad + g * ENTRIES, ENTRIES, count, ENTRIES, g_table);
    h[0] = vf{};
    for (int k = 0; k < ENTRIES; k++) h[0] -= g_table[k] * table[k];
    for (int bit = 0; bit < ENTRIES; bit++)
      for (int i = 0; i < 1 << bit; i++) h[(1 << bit) + i] = h[i] + g_table[ENTRIES - 1 - bit];
    for (int i = 0; i < FUNCTIONS; i++) e[i] *= scale * h[i];
    store_columns(e, FUNCTIONS, grad_theta + (g << ENTRIES), FUNCTIONS, count);
  }
}

inline void tables(int kind, int arity, const float* theta, int64_t gates, float* value) {
  if (kind != GL_SOFTMAX) estimate(kind, theta, gates << arity, value);
  else if (arity == 1) softmax_table<2>(theta, gates, value);
  else if (arity == 2) softmax_table<4>(theta, gates, value);
  else softmax_table<8>(theta, gates, value);
}
inline void tables_bwd(int kind, int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta) {
  if (kind != GL_SOFTMAX) estimate_bwd(kind, theta, grad, gates << arity, grad_theta);
  else if (arity == 1) softmax_bwd<2>(theta, grad, gates, grad_theta);
  else if (arity == 2) softmax_bwd<4>(theta, grad, gates, grad_theta);
  else softmax_bwd<8>(theta, grad, gates, grad_theta);
}

// v[i] - v[i - STEP] in the lanes with bit STEP set, v[i] in the others; and its transpose.
template <int STEP, int... I>
GL_INLINE vf difference(vf v, Indices<I...>) {
  return v - __builtin_shufflevector(v, vf{}, ((I & STEP) ? I - STEP : LANES + I)...);
}
template <int STEP, int... I>
GL_INLINE vf difference_transposed(vf v, Indices<I...>) {
  return v - __builtin_shufflevector(v, vf{}, ((I & STEP) ? LANES + I : I + STEP)...);
}

inline void tables_to_quads(int arity, const float* table, int64_t gates, float* quads) {
  if (arity == 1)
    map(table, gates << arity, quads, [](vf v) { return difference<1>(v, Lanes()); });
  else
    map(table, gates << arity, quads, [](vf v) { return difference<2>(difference<1>(v, Lanes()), Lanes()); });
}
inline void quads_to_tables_bwd(int arity, const float* sums, int64_t gates, float* grad_table) {
  if (arity == 1)
    map(sums, gates << arity, grad_table, [](vf v) { return difference_transposed<1>(v, Lanes()); });
  else
    map(sums, gates << arity, grad_table,
        [](vf v) { return difference_transposed<1>(difference_transposed<2>(v, Lanes()), Lanes()); });
}

inline int64_t parameters(const Layer& layer) {
  return 1 << (layer.kind == GL_SOFTMAX ? 1 << layer.arity : layer.arity);
}

// Coefficients of `gates` gates from `first` on.
inline void make_quads(const Layer& layer, int64_t first, int64_t gates, float* quads) {
  alignas(64) float table[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < gates; j += BLOCK) {
    const int64_t n = gates - j < BLOCK ? gates - j : BLOCK;
    tables(layer.kind, layer.arity, layer.theta + (first + j) * parameters(layer), n, table);
    tables_to_quads(layer.arity, table, n, quads + (j << layer.arity));
  }
}

// grad_theta of the same gates from the groups' sums, added in order. `sums` may lie in grad_theta.
inline void make_grads(const Layer& layer, int64_t first, int64_t gates, const float* sums, const float* others,
                       int64_t group_stride, int more) {
  if (!layer.grad_theta) return;
  alignas(64) float total[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < gates; j += BLOCK) {
    const int64_t n = gates - j < BLOCK ? gates - j : BLOCK;
    const float* from = sums + (j << layer.arity);
    for (int g = 0; g < more; g++)
      map2(g == 0 ? from : total, others + (j << layer.arity) + g * group_stride, n << layer.arity, total,
           [](vf a, vf b) { return a + b; });
    quads_to_tables_bwd(layer.arity, more ? total : from, n, total);
    const int64_t at = (first + j) * parameters(layer);
    tables_bwd(layer.kind, layer.arity, layer.theta + at, total, n, layer.grad_theta + at);
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
