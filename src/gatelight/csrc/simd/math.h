// sin, cos and exp of vectors of floats.
//
// Bounds, tested against double precision: sin and cos have an absolute error below 1.2e-7 for |x| <= SIN_LIMIT
// (callers take the scalar library beyond it); exp_nonpositive has a relative error below 2e-7 on [-87, 0], 0 below.
#pragma once

#include "simd/vectors.h"

namespace gatelight {
namespace GL_PATH {

// |x| up to which k = round(x / pi) has at most 12 bits, so that k times each part of pi below is exact.
constexpr float SIN_LIMIT = 8192.0f;
// Adding and subtracting 1.5 * 2^23 rounds to a whole number, whose last bit is then the last bit of the sum.
constexpr float ROUNDER = 12582912.0f;

struct Reduced {
  vf r;     // x - k pi, in [-pi/2, pi/2]
  vi sign;  // the sign bit of (-1)^k
};

GL_INLINE Reduced reduce_by_pi(vf x) {
  const vf shifted = x * 0.318309886f + ROUNDER;
  const vf k = shifted - ROUNDER;
  // pi in parts of 12, 12, 12 and 24 bits; the first two steps are exact.
  vf r = x - k * 3.140625f;
  r = r - k * 0.0009675025939941406f;
  r = r - k * 1.5099067240953445e-07f;
  r = r - k * 5.126688136514179e-12f;
  return {r, (vi)shifted << 31};
}

GL_INLINE vf sin_reduced(Reduced a) {
  const vf z = a.r * a.r;
  vf p = 2.6087504920724314e-06f * z + -0.00019811037054751068f;
  p = p * z + 0.008333086967468262f;
  p = p * z + -0.16666659712791443f;
  return (vf)((vi)(a.r * z * p + a.r) ^ a.sign);
}

GL_INLINE vf cos_reduced(Reduced a) {
  const vf z = a.r * a.r;
  vf p = -2.6192120117229933e-07f * z + 2.4769224182819016e-05f;
  p = p * z + -0.0013888567918911576f;
  p = p * z + 0.041666656732559204f;
  return (vf)((vi)(p * z * z + (1.0f - 0.5f * z)) ^ a.sign);
}

// exp(x) = 2^k exp(r) with r = x - k ln 2 in [-ln2/2, ln2/2]; x <= 0. A NaN stays one.
GL_INLINE vf exp_nonpositive(vf x) {
  const vi tiny = x < -87.0f;
  x = select(tiny, splat(-87.0f), x);
  const vf shifted = x * 1.44269504f + ROUNDER;
  const vf k = shifted - ROUNDER;
  vf r = x - k * 0.693145751953125f;
  r = r - k * 1.428606765330187e-06f;
  vf p = 0.0013950809370726347f * r + 0.008369073271751404f;
  p = p * r + 0.04166620224714279f;
  p = p * r + 0.16666516661643982f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const vf power = (vf)(((vi)shifted << 23) + (127 << 23));
  return select(tiny, vf{}, p * power);
}

}  // namespace GL_PATH
}  // namespace gatelight
