// Arrays of floats, vector by vector.
#pragma once

#include <string.h>

#include "simd/vectors.h"

namespace gatelight {
namespace GL_PATH {

// dst[i] = f(a[i], b[i]) for n floats, the tail through a padded copy.
template <class F>
GL_INLINE void map2(const float* a, const float* b, int64_t n, float* dst, F f) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) store(dst + i, f(load(a + i), load(b + i)));
  if (i < n) {
    float u[LANES] = {0}, v[LANES] = {0}, w[LANES];
    memcpy(u, a + i, sizeof(float) * (n - i));
    memcpy(v, b + i, sizeof(float) * (n - i));
    store(w, f(load(u), load(v)));
    memcpy(dst + i, w, sizeof(float) * (n - i));
  }
}
template <class F>
GL_INLINE void map(const float* a, int64_t n, float* dst, F f) {
  map2(a, a, n, dst, [&](vf x, vf) { return f(x); });
}

// columns[c] lane r = rows[r][c]; lanes beyond the last row repeat it.
GL_INLINE void load_columns(const float* rows, int64_t stride, int count, int64_t columns, vf* out) {
  const float* row[LANES];
  for (int r = 0; r < LANES; r++) row[r] = rows + stride * (r < count ? r : count - 1);
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    vf v[LANES];
    for (int r = 0; r < LANES; r++) v[r] = load(row[r] + c);
    transpose(v);
    for (int r = 0; r < LANES; r++) out[c + r] = v[r];
  }
  for (; c < columns; c++) {
    float lanes[LANES];
    for (int r = 0; r < LANES; r++) lanes[r] = row[r][c];
    out[c] = load(lanes);
  }
}

// The inverse of load_columns for the first `count` rows.
GL_INLINE void store_columns(const vf* in, int64_t columns, float* rows, int64_t stride, int count) {
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    vf v[LANES];
    for (int r = 0; r < LANES; r++) v[r] = in[c + r];
    transpose(v);
    for (int r = 0; r < count; r++) store(rows + stride * r + c, v[r]);
  }
  for (; c < columns; c++)
    for (int r = 0; r < count; r++) rows[stride * r + c] = in[c][r];
}

}  // namespace GL_PATH
}  // namespace gatelight
