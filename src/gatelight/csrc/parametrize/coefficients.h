// theta -> table -> coefficients, and the gradients back, for runs of gates.
//
// The gate kernels read each table with its last two inputs in polynomial form: entries t0 t1 t2 t3 become
//     c0 = t0   c1 = t1 - t0   c2 = t2 - t0   c3 = t3 - t2 - t1 + t0     f(p, q) = c0 + c1 q + c2 p + c3 p q
// (arity 1: c0 = t0, c1 = t1 - t0). Their sums come back in the same form and the transposed map makes table gradients.
#pragma once

#include "dense/layer.h"
#include "parametrize/map.h"
#include "simd/arrays.h"

namespace gatelight {
namespace GL_PATH {

// v[i] - v[i - STEP] in the lanes with bit STEP set, v[i] in the others; and its transpose.
template <int STEP, int... I>
GL_INLINE vf difference(vf v, Indices<I...>) {
  return v - __builtin_shufflevector(v, vf{}, ((I & STEP) ? I - STEP : LANES + I)...);
}
template <int STEP, int... I>
GL_INLINE vf difference_transposed(vf v, Indices<I...>) {
  return v - __builtin_shufflevector(v, vf{}, ((I & STEP) ? LANES + I : I + STEP)...);
}

inline void to_coefficients(int arity, const float* table, int64_t gates, float* coefficients) {
  if (arity == 1)
    map(table, gates << arity, coefficients, [](vf v) { return difference<1>(v, Lanes()); });
  else
    map(table, gates << arity, coefficients, [](vf v) { return difference<2>(difference<1>(v, Lanes()), Lanes()); });
}
inline void to_coefficients_bwd(int arity, const float* sums, int64_t gates, float* grad_table) {
  if (arity == 1)
    map(sums, gates << arity, grad_table, [](vf v) { return difference_transposed<1>(v, Lanes()); });
  else
    map(sums, gates << arity, grad_table,
        [](vf v) { return difference_transposed<1>(difference_transposed<2>(v, Lanes()), Lanes()); });
}

// Gates whose coefficients are made at a time: the largest arity's then take 16 KiB.
constexpr int BLOCK = 64;

// Coefficients of `gates` gates from `first` on.
inline void make_coefficients(const Layer& layer, int64_t first, int64_t gates, float* coefficients) {
  alignas(64) float table[BLOCK << MAX_ARITY];
  for (int64_t j = 0; j < gates; j += BLOCK) {
    const int64_t n = gates - j < BLOCK ? gates - j : BLOCK;
    layer.map->forward(layer.arity, layer.theta + (first + j) * layer.parameters, n, table);
    to_coefficients(layer.arity, table, n, coefficients + (j << layer.arity));
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
    to_coefficients_bwd(layer.arity, more ? total : from, n, total);
    const int64_t at = (first + j) * layer.parameters;
    layer.map->backward(layer.arity, layer.theta + at, total, n, layer.grad_theta + at);
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
