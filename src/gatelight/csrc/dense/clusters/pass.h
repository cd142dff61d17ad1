// Forward and backward of a stack that is worked on cluster by cluster: plan.pairs says how.
#pragma once

#include "dense/plan.h"

namespace gatelight {

// `save` is filled by forward: coefficients, then the input of each pair.
int32_t clusters_forward(Plan& plan, float* save);
int32_t clusters_backward(Plan& plan, float* save);
// Bytes backward takes for itself.
int64_t clusters_work_bytes(const Plan& plan);

}  // namespace gatelight
