// Moving rows in and out of a tile: from and to the caller's matrices, and to and from what forward saves.
//
// A tile that has fewer samples than its width is padded: inputs repeat the last sample, so that no value appears that
// a real sample does not have, and gradients are zero, so that padding adds nothing to any sum.
#pragma once

#include <string.h>

#include "kernels.h"
#include "params.h"
#include "simd.h"

namespace gatelight {
namespace GL_PATH {

constexpr int ROWS_AHEAD = 64;

enum class Pad { Repeat, Zero };

// A row of `samples` values, padded to W. Where reading W of them would leave the memory, they are read one by one.
template <int W>
GL_INLINE Row<W> padded(const float* values, int samples, bool inside, Pad how) {
  if (W == 1 || samples == W) return Row<W>::load(values);
  float some[W] = {};
  if (!inside)
    for (int s = 0; s < samples; s++) some[s] = values[s];
  return cut(Row<W>::load(inside ? values : some), samples, how == Pad::Zero ? 0.0f : values[samples - 1]);
}

// `samples` samples from `first` on of a matrix into the rows of dst, stride floats apart. Where `lines`, the gradient
// half is zeroed.
template <int W>
inline void pack(const GlMatrix& from, int64_t first, int samples, int64_t rows, Pad how, float* dst, int64_t stride,
                 bool lines) {
  if (from.sample_major && W > 1) {
    constexpr int COLUMNS = 64;
    vf v[COLUMNS];
    for (int64_t i = 0; i < rows; i += COLUMNS) {
      const int64_t n = rows - i < COLUMNS ? rows - i : COLUMNS;
      alignas(64) float block[COLUMNS][W];
      for (int part = 0; part < samples; part += LANES) {
        const int count = samples - part < LANES ? samples - part : LANES;
        load_columns(from.data + (first + part) * from.stride + i, from.stride, count, n, v);
        for (int64_t k = 0; k < n; k++) store(block[k] + part, v[k]);
      }
      for (int64_t k = 0; k < n; k++) padded<W>(block[k], samples, true, how).store(dst + (i + k) * stride);
    }
  } else {
    const int64_t row_step = from.sample_major ? 1 : from.stride;
    const float* src = from.data + first * (from.sample_major ? from.stride : 1);
    const float* end = src + (rows - 1) * row_step + samples;
    for (int64_t i = 0; i < rows && i < ROWS_AHEAD; i++) fetch_far<W>(src + i * row_step);
    for (int64_t i = 0; i < rows; i++) {
      const float* row = src + i * row_step;
      if (i + ROWS_AHEAD < rows) fetch_far<W>(row + ROWS_AHEAD * row_step);
      padded<W>(row, samples, row + W <= end, how).store(dst + i * stride);
    }
  }
  if (lines)
    for (int64_t i = 0; i < rows; i++) Row<W>::all(0.0f).store(dst + i * stride + W);
}

// The inverse for a feature-major matrix.
template <int W>
inline void unpack(const float* src, int64_t stride, int64_t rows, const GlMatrix& to, int64_t first, int samples) {
  for (int64_t i = 0; i < rows; i++) {
    float* row = to.data + i * to.stride + first;
    if (samples == W) Row<W>::load(src + i * stride).store(row);
    else
      for (int s = 0; s < samples; s++) row[s] = src[i * stride + s];
  }
}

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
// afterwards or cut off; the last rows are moved value by value.
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
