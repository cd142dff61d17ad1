// What each SIMD path offers for trees of gates over images, and how the images of a tile are laid out.
#pragma once

#include "dense/layer.h"

namespace gatelight {

// One convolutional layer with the pooling after it. In a tile, an image is planes of rows of 16 floats, one row for
// each pixel; a plane that a layer reads has one more row, of zeros, where the padding is.
struct Conv : GlConv {
  Layer layer;            // its gates, tree after tree; `in` and the kernels of dense layers are not used
  const int32_t* shifts;  // [kernel * kernel, positions]: from a plane's start to the pixel, in floats

  int64_t rows_high() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t rows_wide() const { return (width + 2 * padding - kernel) / stride + 1; }
  int64_t out_high() const { return rows_high() / pool; }
  int64_t out_wide() const { return rows_wide() / pool; }
  int64_t plane_out() const { return out_high() * out_wide(); }  // pixels of the pooled image
  int64_t positions() const { return plane_out() * pool * pool; }
  int64_t winners() const { return pool == 1 ? 0 : out_channels * plane_out(); }
  int64_t plane_in() const { return int64_t(height) * width + 1; }
};

struct ConvKernels {
  bool (*supported)(int arity, int depth);
  // Rows of out are out_stride floats apart, planes out_plane rows. `winners`, one for each pooled output, tells
  // backward which positions were largest; null: not wanted.
  void (*forward)(const Conv& conv, const float* x, float* out, int64_t out_plane, int64_t out_stride,
                  uint32_t* winners);
  // Adds to grad_x (null: not wanted), laid out as x, and adds to or sets a group's sums.
  void (*backward)(const Conv& conv, const float* x, const float* grad_out, int64_t out_plane,
                   const uint32_t* winners, float* grad_x, float* group, bool accumulate);
  // `rows` rows of a matrix from `from` on to the rows of a tile and back; short tiles repeat the last sample, or are
  // filled with zeros.
  void (*pack)(const GlMatrix& from, int64_t first_row, int64_t first, int samples, int64_t rows, bool zeros,
               float* to);
  void (*unpack)(const float* from, int64_t rows, const GlMatrix& to, int64_t first_row, int64_t first, int samples);
};

}  // namespace gatelight
