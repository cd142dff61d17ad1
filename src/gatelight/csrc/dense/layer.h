// A layer of gates as the kernels see it. A convolutional layer's trees are gates in such a layer too.
#pragma once

#include <cstdint>

#include "gatelight.h"
#include "parametrize/map.h"

namespace gatelight {

constexpr int TILE = 16;  // samples that are processed together

struct Layer : GlLayer {
  const Map* map;             // from theta to the table
  int64_t parameters;         // of a gate
  const float* coefficients;  // [gates, 2^arity]; null: made from theta on the fly (batches of one tile)
  int64_t offset;             // where this layer's sums start in a segment's buffer, in floats, a multiple of 16
  float* first_sums;          // the first group's sums, in grad_theta itself where their sizes agree
  bool linked;                // nearly every gate of two inputs reads first what the gate before it reads last

  float* sums(float* group) const { return group ? group + offset : first_sums; }
};

}  // namespace gatelight
