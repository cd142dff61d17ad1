// Forward and backward of a stack that is processed cluster by cluster: plan.pairs says how.
#pragma once

#include "dense/plan.h"

namespace gatelight {

// `save` is filled by forward: coefficients, then the input of each pair.
int32_t clusters_forward(Plan& plan, float* save);
int32_t clusters_backward(Plan& plan, float* save);
// Bytes of scratch that backward needs.
int64_t clusters_work_bytes(const Plan& plan);

}  // namespace gatelight
