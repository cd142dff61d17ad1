// The encoder on a block: samples are compared 64 features at a time, and 64 x 64 bits are transposed to rows.
#pragma once

#include <cfloat>

#include "engine/interpret/rows.h"
#include "engine/program.h"
#include "gatelight_engine.h"

namespace gatelight {
namespace engine::GL_PATH {

// What a word of samples is compared with, held in registers: of() gives the bits of 64 features of a sample.
struct CompareBytes {
  uint64_t possible;
#if defined(__AVX512BW__)
  __m512i least;
  explicit GL_INLINE CompareBytes(const Encode& e) : possible(e.possible), least(_mm512_load_si512(e.least)) {}
  GL_INLINE uint64_t of(const uint8_t* x) const {
    return _mm512_mask_cmpge_epu8_mask(possible, _mm512_loadu_si512(x), least);
  }
#elif defined(__AVX2__)
  __m256i least[2];
  explicit GL_INLINE CompareBytes(const Encode& e) : possible(e.possible) {
    for (int i = 0; i < 2; i++) least[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(e.least) + i);
  }
  GL_INLINE uint64_t of(const uint8_t* x) const {
    uint64_t bits = 0;
    for (int i = 0; i < 2; i++) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x) + i);
      bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(v, least[i]), v)) << (32 * i);
    }
    return bits & possible;
  }
#elif defined(__SSE2__)
  __m128i least[4];
  explicit GL_INLINE CompareBytes(const Encode& e) : possible(e.possible) {
    for (int i = 0; i < 4; i++) least[i] = _mm_load_si128(reinterpret_cast<const __m128i*>(e.least) + i);
  }
  GL_INLINE uint64_t of(const uint8_t* x) const {
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x) + i);
      bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(v, least[i]), v)) << (16 * i);
    }
    return bits & possible;
  }
#else
  const uint8_t* least;
  explicit GL_INLINE CompareBytes(const Encode& e) : possible(e.possible), least(e.least) {}
  GL_INLINE uint64_t of(const uint8_t* x) const {
    uint64_t bits = 0;
    for (int i = 0; i < WORD; i++) bits |= (uint64_t)(x[i] >= least[i]) << i;
    return bits & possible;
  }
#endif
};

struct CompareFloats {
  const float* threshold;
  explicit GL_INLINE CompareFloats(const Encode& e) : threshold(e.threshold) {}
  GL_INLINE uint64_t of(const float* x) const {
    uint64_t bits = 0;
#if defined(__AVX512F__)
    for (int i = 0; i < WORD; i += 16)
      bits |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + i), _mm512_load_ps(threshold + i), _CMP_GT_OQ) << i;
#elif defined(__AVX2__)
    for (int i = 0; i < WORD; i += 8) {
      const __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_load_ps(threshold + i), _CMP_GT_OQ);
      bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(above) << i;
    }
#elif defined(__SSE2__)
    for (int i = 0; i < WORD; i += 4) {
      const __m128 above = _mm_cmpgt_ps(_mm_loadu_ps(x + i), _mm_load_ps(threshold + i));
      bits |= (uint64_t)(uint32_t)_mm_movemask_ps(above) << i;
    }
#else
    for (int i = 0; i < WORD; i++) bits |= (uint64_t)(x[i] > threshold[i]) << i;
#endif
    return bits;
  }
};

template <class T>
struct CompareOf {
  typedef CompareBytes type;
};
template <>
struct CompareOf<float> {
  typedef CompareFloats type;
};
template <class T>
using Compare = typename CompareOf<T>::type;

template <class T>
__attribute__((noinline)) uint64_t encode_gathered(const T* x, const Encode& e) {
  T picked[WORD];
  for (int i = 0; i < WORD; i++) picked[i] = x[e.feature[i]];
  return Compare<T>(e).of(picked);
}

// Room for 64 features where there are fewer.
template <class T>
GL_INLINE const T* pad(const T* x, int64_t features, T* padded) {
  for (int i = 0; i < WORD; i++) padded[i] = i < features ? x[i] : T(0);
  return padded;
}

// Whether all features of a sample are of the circuit's kind.
GL_INLINE bool of_kind(int32_t kind, const uint8_t* x, int64_t count) {
  if (kind != GL_FEATURE_BITS) return true;
  uint8_t all = 0;
  for (int64_t i = 0; i < count; i++) all = (uint8_t)(all | x[i]);
  return all <= 1;
}
GL_INLINE bool of_kind(int32_t kind, const float* x, int64_t count) {
  int bad = 0;
  if (kind == GL_FEATURE_BITS) {
    for (int64_t i = 0; i < count; i++) bad |= (x[i] != 0.0f) & (x[i] != 1.0f);
    return !bad;
  }
  // A NaN is neither at least `low` nor at most `high`.
  const float low = kind == GL_FEATURE_BYTES ? 0.0f : -FLT_MAX, high = kind == GL_FEATURE_BYTES ? 1.0f : FLT_MAX;
  for (int64_t i = 0; i < count; i++) bad |= !(x[i] >= low) | !(x[i] <= high);
  return !bad;
}

template <int S>
constexpr uint64_t low_halves() {  // bits whose number has bit S clear
  uint64_t m = 0;
  for (int i = 0; i < 64; i++) m |= uint64_t(!(i & S)) << i;
  return m;
}

// Swaps the upper right and the lower left quarter of each 2S x 2S block of bits of two rows S apart.
template <int S, class R>
GL_INLINE void swap_blocks(R& a, R& b) {
#pragma GCC unroll 8
  for (int i = 0; i < R::PARTS; i++) {
    const auto x = a.v[i], y = b.v[i], m = x - x + low_halves<S>();
    a.v[i] = choose(m, x, y << S);
    b.v[i] = choose(m, x >> S, y);
  }
}

template <int S, class R>
GL_INLINE void swap_eight(R* v) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) swap_blocks<4 * S>(v[i], v[i + 4]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) swap_blocks<2 * S>(v[i + (i & 2)], v[i + (i & 2) + 2]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) swap_blocks<S>(v[2 * i], v[2 * i + 1]);
}

// Row j of 64 has word i of sample j; then row i, put into slot[i], has bit i of all samples.
template <class R>
GL_INLINE void transpose_to_slots(const uint64_t* masks, const int32_t* slot, uint64_t* rows) {
  R half[64];
  for (int b = 0; b < 8; b++) {
    R v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = R::load(masks, b + 8 * i);
    swap_eight<8>(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) half[b + 8 * i] = v[i];
  }
  for (int b = 0; b < 8; b++) {
    R v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = half[8 * b + i];
    swap_eight<1>(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i].store(rows, (uint64_t)slot[8 * b + i]);
  }
}

// All inputs of samples first .. first + count to their slots; false if a feature is not of the kind. The samples of
// one line of masks are 64 apart; those beyond `count` repeat the first one: their results are never read.
template <class T, class R>
bool encode_block(const Program& program, const Samples& s, int64_t first, int count, uint64_t* masks, uint64_t* rows) {
  const char* data = s.data + first * s.stride;
  bool fine = true;
  for (int j = 0; j < 64; j++) {
    const T* x[R::WORDS];
    T padded[R::WORDS][WORD];
    for (int w = 0; w < R::WORDS; w++) {
      const int i = 64 * w + j;
      x[w] = reinterpret_cast<const T*>(data + (i < count ? i : 0) * s.stride);
      fine = fine && of_kind(program.feature_kind, x[w], program.features);
      if (program.features < WORD) x[w] = pad(x[w], program.features, padded[w]);
    }
    uint64_t* out = masks + j * R::WORDS;
    for (int64_t i = 0; i < program.encodes; i++, out += MASK_ROWS * R::WORDS) {
      const Encode& e = program.encode[i];
      if (__builtin_expect(e.gathered, 0)) {
        for (int w = 0; w < R::WORDS; w++) out[w] = encode_gathered(x[w], e);
      } else {
        const Compare<T> compare(e);
        const int64_t at = e.first;
#pragma GCC unroll 8
        for (int w = 0; w < R::WORDS; w++) out[w] = compare.of(x[w] + at);
      }
    }
  }
  for (int64_t e = 0; e < program.encodes; e++)
    transpose_to_slots<R>(masks + e * MASK_ROWS * R::WORDS, program.encode[e].slot, rows);
  return fine;
}

// The same for one sample: no transposition, and each row is all ones or all zeros.
template <class T>
bool encode_one(const Program& program, const Samples& s, int64_t first, uint64_t* rows) {
  const T* x = reinterpret_cast<const T*>(s.data + first * s.stride);
  if (!of_kind(program.feature_kind, x, program.features)) return false;
  T padded[WORD];
  if (program.features < WORD) x = pad(x, program.features, padded);
  for (int64_t e = 0; e < program.encodes; e++) {
    const Encode& word = program.encode[e];
    const uint64_t mask = word.gathered ? encode_gathered(x, word) : Compare<T>(word).of(x + word.first);
    for (int i = 0; i < WORD; i++) rows[word.slot[i]] = 0 - (mask >> i & 1);
  }
  return true;
}

}  // namespace engine::GL_PATH
}  // namespace gatelight
