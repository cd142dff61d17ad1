// Rows of samples, made of vectors: 16 samples, 32 of them, or one.
#pragma once

#include "simd/vectors.h"

namespace gatelight {
namespace GL_PATH {

// Fetches a row of a caller's matrix into L2. Such rows are in no cache yet, too far apart for the processor to fetch
// them by itself, and may begin anywhere in a line. Many more lines may be on their way to L2 than to L1.
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
