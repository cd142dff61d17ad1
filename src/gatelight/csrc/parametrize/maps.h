// Every map from the parameters of a gate to its table, and their gradients.
//
// To add one, write its two functions and a row of MAPS. Its number is its place in there, which GlKind names.
#pragma once

#include <math.h>
#include <string.h>

#include "gatelight.h"
#include "parametrize/map.h"
#include "simd/arrays.h"
#include "simd/math.h"

namespace gatelight {
namespace GL_PATH {

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

// Maps that take each entry of a table from a parameter of its own.
static int64_t one_for_each_entry(int arity) { return int64_t(1) << arity; }

static void copy(int arity, const float* theta, int64_t gates, float* table) {
  memcpy(table, theta, sizeof(float) * (gates << arity));
}

// Derivative 1: of the table itself, and straight through the others.
static void copy_bwd(int arity, const float*, const float* grad, int64_t gates, float* grad_theta) {
  memcpy(grad_theta, grad, sizeof(float) * (gates << arity));
}

static void sin_fwd(int arity, const float* theta, int64_t gates, float* table) {
  const int64_t n = gates << arity;
  map(theta, n, table, [](vf x) { return 0.5f + 0.5f * sin_reduced(reduce_by_pi(x)); });
  if (within_sin_limit(theta, n)) return;
  for (int64_t i = 0; i < n; i++)
    if (!(__builtin_fabsf(theta[i]) <= SIN_LIMIT)) table[i] = (float)(0.5 + 0.5 * ::sin((double)theta[i]));
}

static void sin_bwd(int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta) {
  const int64_t n = gates << arity;
  map2(theta, grad, n, grad_theta, [](vf x, vf g) { return 0.5f * g * cos_reduced(reduce_by_pi(x)); });
  if (within_sin_limit(theta, n)) return;
  for (int64_t i = 0; i < n; i++)
    if (!(__builtin_fabsf(theta[i]) <= SIN_LIMIT)) grad_theta[i] = (float)(0.5 * grad[i] * ::cos((double)theta[i]));
}

static void clamped_sin_fwd(int arity, const float* theta, int64_t gates, float* table) {
  map(theta, gates << arity, table, [](vf x) {
    return 0.5f + 0.5f * sin_reduced(Reduced{clamp(x, -1.57079633f, 1.57079633f), vi{}});
  });
}

static void sigmoid_fwd(int arity, const float* theta, int64_t gates, float* table) {
  map(theta, gates << arity, table, [](vf x) { return sigmoid(x); });
}

static void sigmoid_bwd(int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta) {
  map2(theta, grad, gates << arity, grad_theta, [](vf x, vf g) {
    const vf e = exp_nonpositive(-absolute(x));  // s (1 - s) = e / (1 + e)^2, even in x
    return g * e / ((1.0f + e) * (1.0f + e));
  });
}

static void clamp_fwd(int arity, const float* theta, int64_t gates, float* table) {
  map(theta, gates << arity, table, [](vf x) { return clamp(x, 0.0f, 1.0f); });
}

// The softmax over all functions.
static int64_t one_for_each_function(int arity) { return int64_t(1) << (1 << arity); }

// OP for LANES gates, a gate in each lane: probabilities P = softmax(theta) over all functions, left unnormalized in e,
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
static void softmax_table(const float* theta, int64_t gates, float* value) {
  vf e[1 << ENTRIES], table[ENTRIES];
  for (int64_t g = 0; g < gates; g += LANES) {
    const int count = gates - g < LANES ? (int)(gates - g) : LANES;
    softmax_lanes<ENTRIES>(theta + (g << ENTRIES), count, e, table);
    store_columns(table, ENTRIES, value + g * ENTRIES, ENTRIES, count);
  }
}

// grad_theta_i = P_i (h_i - sum_j P_j h_j), h_i = sum of grad_k over the entries k that function i sets.
template <int ENTRIES>
static void softmax_table_bwd(const float* theta, const float* grad, int64_t gates, float* grad_theta) {
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

static void softmax_fwd(int arity, const float* theta, int64_t gates, float* table) {
  if (arity == 1) softmax_table<2>(theta, gates, table);
  else if (arity == 2) softmax_table<4>(theta, gates, table);
  else softmax_table<8>(theta, gates, table);
}

static void softmax_bwd(int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta) {
  if (arity == 1) softmax_table_bwd<2>(theta, grad, gates, grad_theta);
  else if (arity == 2) softmax_table_bwd<4>(theta, grad, gates, grad_theta);
  else softmax_table_bwd<8>(theta, grad, gates, grad_theta);
}

constexpr Map MAPS[] = {
    {GL_TABLE, MAX_ARITY, one_for_each_entry, copy, copy_bwd},
    {GL_SIN, MAX_ARITY, one_for_each_entry, sin_fwd, sin_bwd},
    {GL_SIN_ST, MAX_ARITY, one_for_each_entry, clamped_sin_fwd, copy_bwd},
    {GL_SIGMOID, MAX_ARITY, one_for_each_entry, sigmoid_fwd, sigmoid_bwd},
    {GL_SIGMOID_ST, MAX_ARITY, one_for_each_entry, sigmoid_fwd, copy_bwd},
    {GL_LINEAR_ST, MAX_ARITY, one_for_each_entry, clamp_fwd, copy_bwd},
    {GL_SOFTMAX, 3, one_for_each_function, softmax_fwd, softmax_bwd},
};
constexpr int32_t MAP_COUNT = sizeof(MAPS) / sizeof(MAPS[0]);

constexpr bool numbered_by_place() {
  for (int32_t i = 0; i < MAP_COUNT; i++)
    if (MAPS[i].kind != i) return false;
  return true;
}
static_assert(numbered_by_place(), "a map's number is its place");

}  // namespace GL_PATH
}  // namespace gatelight
