// Vectors of the width the path is compiled for, and rows of 16 samples made of them.
//
// Included once per SIMD path with GL_PATH (a namespace) and GL_LANES (floats in a register) set. Nothing in here
// or in the other kernel headers may call an inline function of the standard library: the linker keeps one copy of
// those, and it might be the copy that was compiled for a newer processor than the one at hand.
#pragma once

#include <cstdint>
#include <type_traits>

#define GL_INLINE inline __attribute__((always_inline))

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

// Keeps a value in a register: the compiler would rather load it again for every use, and loads are what is scarce.
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

// Fetches a row of a caller's matrix into L2. Such rows are in no cache yet, too far apart for the processor to fetch
// them by itself, and may begin anywhere in a line. Many more lines may be on their way to L2 than to the first cache.
template <int W>
GL_INLINE void fetch_far(const float* row) {
  if (W == 1) return;
  for (int i = 0; i < W; i += 16) __builtin_prefetch(row + i, 0, 2);
  __builtin_prefetch(row + W - 1, 0, 2);
}

// The samples of a tile: 16, or one for batches of one sample.
template <int W>
struct Row {
  static constexpr int PARTS = W / LANES;
  vf v[PARTS];
  static GL_INLINE Row load(const float* p) {
    Row r;
    for (int i = 0; i < PARTS; i++) r.v[i] = GL_PATH::load(p + i * LANES);
    return r;
  }
  // For rows that are used more than once.
  static GL_INLINE Row hold(const float* p) {
    Row r;
    for (int i = 0; i < PARTS; i++) r.v[i] = held(GL_PATH::load(p + i * LANES));
    return r;
  }
  static GL_INLINE Row all(float s) {
    Row r;
    for (int i = 0; i < PARTS; i++) r.v[i] = splat(s);
    return r;
  }
  GL_INLINE void store(float* p) const {
    for (int i = 0; i < PARTS; i++) GL_PATH::store(p + i * LANES, v[i]);
  }
  // Past the caches; p must be aligned to a line.
  GL_INLINE void stream(float* p) const {
    for (int i = 0; i < PARTS; i++) GL_PATH::stream(p + i * LANES, v[i]);
  }
};

template <>
struct Row<1> {
  static constexpr int PARTS = 1;
  float v[1];
  static GL_INLINE Row load(const float* p) { return Row{{*p}}; }
  static GL_INLINE Row hold(const float* p) { return Row{{*p}}; }
  static GL_INLINE Row all(float s) { return Row{{s}}; }
  GL_INLINE void store(float* p) const { *p = v[0]; }
  GL_INLINE void stream(float* p) const { *p = v[0]; }
};

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

// The coefficients of a quad, loaded once and spread by shuffles: broadcasts from memory would be as many loads.
template <int W>
struct Quad {
  vf v;
  explicit GL_INLINE Quad(const float* c) : v(repeat4(c)) {}
  template <int K>
  GL_INLINE Row<W> all() const {
    Row<W> r;
    for (int i = 0; i < Row<W>::PARTS; i++) r.v[i] = spread<K>(v, Lanes());
    return r;
  }
};
template <>
struct Quad<1> {
  const float* c;
  explicit GL_INLINE Quad(const float* c) : c(c) {}
  template <int K>
  GL_INLINE Row<1> all() const {
    return Row<1>::all(c[K]);
  }
};

template <int... I>
GL_INLINE vi lane_numbers(Indices<I...>) {
  return vi{I...};
}

// The first `samples` of a row, then `filler`.
template <int W>
GL_INLINE Row<W> cut(Row<W> r, int samples, float filler) {
  for (int i = 0; i < Row<W>::PARTS; i++)
    r.v[i] = select(lane_numbers(Lanes()) + i * LANES < samples, r.v[i], splat(filler));
  return r;
}
GL_INLINE Row<1> cut(Row<1> r, int, float) { return r; }

template <int W>
GL_INLINE Row<W> operator*(const Row<W>& a, const Row<W>& b) {
  Row<W> r;
  for (int i = 0; i < Row<W>::PARTS; i++) r.v[i] = a.v[i] * b.v[i];
  return r;
}
template <int W>
GL_INLINE Row<W> operator+(const Row<W>& a, const Row<W>& b) {
  Row<W> r;
  for (int i = 0; i < Row<W>::PARTS; i++) r.v[i] = a.v[i] + b.v[i];
  return r;
}
template <int W>
GL_INLINE Row<W> operator-(const Row<W>& a, const Row<W>& b) {
  Row<W> r;
  for (int i = 0; i < Row<W>::PARTS; i++) r.v[i] = a.v[i] - b.v[i];
  return r;
}
// a b + c, one rounding where the processor has it.
template <int W>
GL_INLINE Row<W> madd(const Row<W>& a, const Row<W>& b, const Row<W>& c) {
  Row<W> r;
  for (int i = 0; i < Row<W>::PARTS; i++) r.v[i] = a.v[i] * b.v[i] + c.v[i];
  return r;
}

// Halves of 16 samples added.
GL_INLINE Row<16> halves(const Row<32>& r) {
  Row<16> sum;
  for (int i = 0; i < Row<16>::PARTS; i++) sum.v[i] = r.v[i] + r.v[i + Row<16>::PARTS];
  return sum;
}

// sums[k] (+)= the sum over the samples of s[k], for 16 rows at once.
GL_INLINE void add_sums(const Row<16>* s, float* sums, bool accumulate) {
#pragma GCC unroll 4
  for (int first = 0; first < 16; first += LANES) {
    vf v[LANES];
#pragma GCC unroll 16
    for (int k = 0; k < LANES; k++) {
      v[k] = s[first + k].v[0];
      for (int i = 1; i < Row<16>::PARTS; i++) v[k] += s[first + k].v[i];
    }
    add_tree(v);
    store(sums + first, accumulate ? load(sums + first) + v[0] : v[0]);
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
