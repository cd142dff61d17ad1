// What each SIMD path offers for the parameters of gates.
#pragma once

#include <cstdint>

#include "dense/layer.h"
#include "parametrize/map.h"

namespace gatelight {

struct ParameterKernels {
  const Map* maps;  // map k has number k
  int32_t map_count;
  // Coefficients of `gates` gates from `first` on.
  void (*coefficients)(const Layer& layer, int64_t first, int64_t gates, float* coefficients);
  // grad_theta of the same from the first group's sums and those of `more` groups, group_stride apart, added in order.
  void (*grads)(const Layer& layer, int64_t first, int64_t gates, const float* sums, const float* others,
                int64_t group_stride, int more);
};

}  // namespace gatelight
