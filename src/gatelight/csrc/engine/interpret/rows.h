// Rows of 512 and of 64 bits, and the logic on them.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd/path.h"

namespace gatelight {
namespace engine::GL_PATH {

typedef uint64_t vw __attribute__((vector_size(GL_BYTES)));
typedef uint64_t vw_memory __attribute__((vector_size(GL_BYTES), may_alias));
typedef uint64_t word_memory __attribute__((may_alias));

// What T is read and written as in an array of words.
template <class T>
struct InMemory {
  typedef word_memory type;
};
template <>
struct InMemory<vw> {
  typedef vw_memory type;
};

// Functions of three bits on one register or word, where the processor has an instruction for them.
#if defined(__AVX512F__)
constexpr int MAX_ROW_ARITY = 3;
template <int TABLE>
GL_INLINE vw lut3(vw a, vw b, vw c) {
  return (vw)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, TABLE);
}
template <int TABLE>
GL_INLINE uint64_t lut3(uint64_t a, uint64_t b, uint64_t c) {
  return (uint64_t)_mm_cvtsi128_si64(_mm_ternarylogic_epi64(
      _mm_cvtsi64_si128((long long)a), _mm_cvtsi64_si128((long long)b), _mm_cvtsi64_si128((long long)c), TABLE));
}
#else
constexpr int MAX_ROW_ARITY = 2;
#endif

template <int TABLE, class T>
GL_INLINE T lut2(T a, T b) {
  static_assert(TABLE >= 0 && TABLE < 16, "a function of two inputs");
  constexpr bool negated = TABLE & 1;
  constexpr int plain = negated ? ~TABLE & 15 : TABLE;  // entries 00 01 10 11 from bit 0 on
  T r;
  if constexpr (plain == 8) r = a & b;
  else if constexpr (plain == 4) r = a & ~b;
  else if constexpr (plain == 2) r = b & ~a;
  else if constexpr (plain == 6) r = a ^ b;
  else if constexpr (plain == 14) r = a | b;
  else if constexpr (plain == 12) r = a;
  else if constexpr (plain == 10) r = b;
  else r = a ^ a;
  return negated ? ~r : r;
}

GL_INLINE void add3(vw a, vw b, vw c, vw& sum, vw& carry) {
#if defined(__AVX512F__)
  sum = lut3<0x96>(a, b, c);
  carry = lut3<0xE8>(a, b, c);
#else
  const vw half = a ^ b;
  carry = (a & b) | (half & c);
  sum = half ^ c;
#endif
}
GL_INLINE void add3(uint64_t a, uint64_t b, uint64_t c, uint64_t& sum, uint64_t& carry) {
  const uint64_t half = a ^ b;
  carry = (a & b) | (half & c);
  sum = half ^ c;
}

template <class T>
GL_INLINE T choose(T mask, T yes, T no) {
  return no ^ ((no ^ yes) & mask);
}
#if defined(__AVX512F__)
GL_INLINE vw choose(vw mask, vw yes, vw no) { return lut3<0xCA>(mask, yes, no); }
#endif

// PARTS registers or words that hold SAMPLES bits.
template <class T, int N>
struct RowOf {
  typedef typename InMemory<T>::type Memory;
  static constexpr int PARTS = N;
  static constexpr int WORDS = N * (int)sizeof(T) / 8;
  static constexpr int SAMPLES = 64 * WORDS;
  T v[N];

  template <class F>
  static GL_INLINE RowOf each(F f) {
    RowOf r;
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) r.v[i] = f(i);
    return r;
  }
  static GL_INLINE RowOf zeros() {
    return each([](int) { return T{}; });
  }
  static GL_INLINE RowOf load(const uint64_t* rows, uint64_t slot) {
    const Memory* p = reinterpret_cast<const Memory*>(rows + slot * WORDS);
    return each([=](int i) -> T { return p[i]; });
  }
  GL_INLINE void store(uint64_t* rows, uint64_t slot) const {
    Memory* p = reinterpret_cast<Memory*>(rows + slot * WORDS);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) p[i] = v[i];
  }
};

typedef RowOf<vw, 64 / GL_BYTES> Row512;
typedef RowOf<uint64_t, 1> Row64;

template <int ARITY, int TABLE, class R>
GL_INLINE R lut(const R* in) {
  return R::each([=](int i) {
    if constexpr (ARITY == 1) return TABLE == 2 ? in[0].v[i] : ~in[0].v[i];
    else if constexpr (ARITY == 2) return lut2<TABLE>(in[0].v[i], in[1].v[i]);
#if defined(__AVX512F__)
    else return lut3<TABLE>(in[0].v[i], in[1].v[i], in[2].v[i]);
#endif
  });
}

// a + b + c: the sum bit and the carry of each sample.
template <class R>
GL_INLINE R full_add(const R& a, const R& b, const R& c, R& carry) {
  R sum;
#pragma GCC unroll 8
  for (int i = 0; i < R::PARTS; i++) {
    auto s = a.v[i], t = a.v[i];
    add3(a.v[i], b.v[i], c.v[i], s, t);
    sum.v[i] = s;
    carry.v[i] = t;
  }
  return sum;
}

}  // namespace engine::GL_PATH
}  // namespace gatelight
