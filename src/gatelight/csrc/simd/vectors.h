// Vectors of the width the path is compiled for.
#pragma once

#include <cstdint>

#include "simd/path.h"

namespace gatelight {
namespace GL_PATH {

constexpr int LANES = GL_LANES;
typedef float vf __attribute__((vector_size(4 * GL_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * GL_LANES)));
typedef float vf_unaligned __attribute__((vector_size(4 * GL_LANES), aligned(4), may_alias));

GL_INLINE vf load(const float* p) { return *reinterpret_cast<const vf_unaligned*>(p); }
GL_INLINE void store(float* p, vf v) { *reinterpret_cast<vf_unaligned*>(p) = v; }
GL_INLINE vf splat(float s) { return s - vf{}; }
GL_INLINE vf select(vi mask, vf yes, vf no) { return (vf)((mask & (vi)yes) | (~mask & (vi)no)); }

// Keeps a value in a register: the compiler would rather load it again for every use, and loads are the bottleneck.
GL_INLINE vf held(vf v) {
#if defined(__AVX512F__)
  __asm__("" : "+v"(v));
#elif defined(__x86_64__)
  __asm__("" : "+x"(v));
#endif
  return v;
}

// A store past the caches, and what has to follow such stores before another thread reads what they wrote.
GL_INLINE void stream(float* p, vf v) {
#if GL_LANES == 16 && defined(__AVX512F__)
  __asm__("vmovntps %1, %0" : "=m"(*reinterpret_cast<vf*>(p)) : "v"(v));
#elif GL_LANES == 8 && defined(__AVX__)
  __asm__("vmovntps %1, %0" : "=m"(*reinterpret_cast<vf*>(p)) : "x"(v));
#elif GL_LANES == 4 && defined(__SSE2__)
  __asm__("movntps %1, %0" : "=m"(*reinterpret_cast<vf*>(p)) : "x"(v));
#else
  store(p, v);
#endif
}
GL_INLINE void finish_streams() {
#if defined(__SSE2__)
  __asm__ volatile("sfence" ::: "memory");
#endif
}

template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  typedef Indices<I...> type;
};
typedef MakeIndices<LANES>::type Lanes;

// Lane i of `low` is a[i] where bit STEP of i is clear and b[i - STEP] where it is set; `high` is the same STEP lanes
// up: for STEP = 1, low = a0 b0 a2 b2 ..., high = a1 b1 a3 b3 ...
template <int STEP, int... I>
GL_INLINE vf low(vf a, vf b, Indices<I...>) {
  return __builtin_shufflevector(a, b, ((I & STEP) ? LANES + I - STEP : I)...);
}
template <int STEP, int... I>
GL_INLINE vf high(vf a, vf b, Indices<I...>) {
  return __builtin_shufflevector(a, b, ((I & STEP) ? LANES + I : I + STEP)...);
}

// The rounds of a sum over lanes: two vectors become one with half the terms left to add. The shuffles are the ones
// that cost one instruction: within quarters of 4 lanes first, then of whole quarters.
template <int... I>
GL_INLINE vf add_singles(vf a, vf b, Indices<I...>) {  // a0 b0 a1 b1 + a2 b2 a3 b3
  return __builtin_shufflevector(a, b, ((I & 1) * LANES + (I & ~3) + (I & 2) / 2)...) +
         __builtin_shufflevector(a, b, ((I & 1) * LANES + (I & ~3) + (I & 2) / 2 + 2)...);
}
template <int... I>
GL_INLINE vf add_pairs(vf a, vf b, Indices<I...>) {  // a0 a1 b0 b1 + a2 a3 b2 b3
  return __builtin_shufflevector(a, b, ((I & 2) / 2 * LANES + (I & ~2))...) +
         __builtin_shufflevector(a, b, ((I & 2) / 2 * LANES + (I | 2))...);
}
template <int... I>
GL_INLINE vf add_quarters(vf a, vf b, Indices<I...>) {  // even quarters of a and b + odd quarters
  return __builtin_shufflevector(a, b, ((I & ~3) * 2 + (I & 3))...) +
         __builtin_shufflevector(a, b, ((I & ~3) * 2 + (I & 3) + 4)...);
}

// Lane k of v[0] becomes the sum of the lanes of v[k], for LANES vectors.
GL_INLINE void add_tree(vf* v) {
#pragma GCC unroll 16
  for (int i = 0; i < LANES / 2; i++) v[i] = add_singles(v[2 * i], v[2 * i + 1], Lanes());
#pragma GCC unroll 16
  for (int i = 0; i < LANES / 4; i++) v[i] = add_pairs(v[2 * i], v[2 * i + 1], Lanes());
#pragma GCC unroll 16
  for (int left = LANES / 8; left > 0; left /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < left; i++) v[i] = add_quarters(v[2 * i], v[2 * i + 1], Lanes());
}

// Transposes LANES vectors of LANES lanes in place.
template <int STEP>
GL_INLINE void transpose_rounds(vf* v) {
  if constexpr (STEP < LANES) {
    for (int i = 0; i < LANES; i++)
      if (!(i & STEP)) {
        const vf a = v[i], b = v[i + STEP];
        v[i] = low<STEP>(a, b, Lanes());
        v[i + STEP] = high<STEP>(a, b, Lanes());
      }
    transpose_rounds<2 * STEP>(v);
  }
}
GL_INLINE void transpose(vf* v) { transpose_rounds<1>(v); }

template <int... I>
GL_INLINE vi lane_numbers(Indices<I...>) {
  return vi{I...};
}

// Four floats again and again. As asm, because GCC 12 makes many instructions of a shuffle that widens.
GL_INLINE vf repeat4(const float* p) {
  vf v;
#if GL_LANES == 16 && defined(__AVX512F__)
  __asm__("vbroadcastf32x4 %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const float(*)[4]>(p)));
#elif GL_LANES == 8 && defined(__AVX__)
  __asm__("vbroadcastf128 %1, %0" : "=x"(v) : "m"(*reinterpret_cast<const float(*)[4]>(p)));
#else
  for (int i = 0; i < LANES; i++) v[i] = p[i % 4];
  v = held(v);
#endif
  return v;
}
template <int K, int... I>
GL_INLINE vf spread(vf v, Indices<I...>) {
  return __builtin_shufflevector(v, v, ((I & ~3) + K)...);
}

}  // namespace GL_PATH
}  // namespace gatelight
