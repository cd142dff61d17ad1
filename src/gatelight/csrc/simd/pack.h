// Moving rows between a tile and the caller's matrices.
//
// A tile that has fewer samples than its width is padded: inputs repeat the last sample, so that no value appears that
// a real sample does not have, and gradients are zero, so that padding adds nothing to any sum.
#pragma once

#include "gatelight.h"
#include "simd/arrays.h"
#include "simd/rows.h"

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

// `samples` samples from `first` on of a matrix into rows of W floats.
template <int W>
inline void pack(const GlMatrix& from, int64_t first, int samples, int64_t rows, Pad how, float* dst) {
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
      for (int64_t k = 0; k < n; k++) padded<W>(block[k], samples, true, how).store(dst + (i + k) * W);
    }
  } else {
    const int64_t row_step = from.sample_major ? 1 : from.stride;
    const float* src = from.data + first * (from.sample_major ? from.stride : 1);
    const float* end = src + (rows - 1) * row_step + samples;
    for (int64_t i = 0; i < rows && i < ROWS_AHEAD; i++) fetch_far<W>(src + i * row_step);
    for (int64_t i = 0; i < rows; i++) {
      const float* row = src + i * row_step;
      if (i + ROWS_AHEAD < rows) fetch_far<W>(row + ROWS_AHEAD * row_step);
      padded<W>(row, samples, row + W <= end, how).store(dst + i * W);
    }
  }
}

// The inverse for a feature-major matrix.
template <int W>
inline void unpack(const float* src, int64_t rows, const GlMatrix& to, int64_t first, int samples) {
  for (int64_t i = 0; i < rows; i++) {
    float* row = to.data + i * to.stride + first;
    if (samples == W) Row<W>::load(src + i * W).store(row);
    else
      for (int s = 0; s < samples; s++) row[s] = src[i * W + s];
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
