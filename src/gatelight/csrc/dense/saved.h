// Moving rows between a tile and what forward saves.
#pragma once

#include <string.h>

#include "simd/pack.h"

namespace gatelight {
namespace GL_PATH {

// Round to nearest, ties to even; a NaN stays one.
GL_INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (uint16_t)(x != x ? 0x7fc0 : rounded);
}
GL_INLINE float from_bf16(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

// Saved rows hold `samples` values, without padding. Full-width moves run over into the next rows, which are written
// later or cut off; the last rows are moved value by value.
template <int W>
inline void save_rows(const float* src, int64_t rows, int samples, bool bf16, char* saved) {
  if (bf16) {
    uint16_t* to = reinterpret_cast<uint16_t*>(saved);
    if (samples == W)
      for (int64_t i = 0; i < rows * W; i++) to[i] = to_bf16(src[i]);
    else
      for (int64_t i = 0; i < rows; i++)
        for (int s = 0; s < samples; s++) to[i * samples + s] = to_bf16(src[i * W + s]);
    return;
  }
  float* to = reinterpret_cast<float*>(saved);
  int64_t i = 0;
  for (; i * samples + W <= rows * samples; i++) Row<W>::load(src + i * W).store(to + i * samples);
  for (; i < rows; i++)
    for (int s = 0; s < samples; s++) to[i * samples + s] = src[i * W + s];
}

// The inverse, padded.
template <int W>
inline void load_rows(const char* saved, int64_t rows, int samples, bool bf16, float* dst) {
  const float* values = reinterpret_cast<const float*>(saved);
  const uint16_t* halves = reinterpret_cast<const uint16_t*>(saved);
  for (int64_t i = 0; i < rows; i++) {
    if (bf16) {
      float some[W] = {};
      for (int s = 0; s < samples; s++) some[s] = from_bf16(halves[i * samples + s]);
      padded<W>(some, samples, true, Pad::Repeat).store(dst + i * W);
    } else {
      padded<W>(values + i * samples, samples, (rows - i) * samples >= W, Pad::Repeat).store(dst + i * W);
    }
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
