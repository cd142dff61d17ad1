// What each SIMD path offers for stacks of dense layers: functions that work on one tile or one cluster.
#pragma once

#include "dense/clusters/cluster.h"
#include "dense/pass.h"

namespace gatelight {

struct DenseKernels {
  void (*forward_tile)(const Pass& pass, const Span& span, int64_t tile, float* scratch);
  // Adds the tile's coefficient gradients to a group's sums (or sets them; null is the first group), or writes
  // grad_theta where coefficients are fused.
  void (*backward_tile)(const Pass& pass, const Span& span, int64_t tile, float* group, bool accumulate,
                        float* scratch);
  // Rows of the tile of WIDE_TILE that begins at a sample: from the stack's input, and to the gradient for it.
  void (*pack)(const Pass& pass, int64_t sample, float* rows);
  void (*unpack)(const Pass& pass, int64_t sample, const float* rows);
  // All tiles of a cluster.
  void (*cluster_fwd)(const Pass& pass, const Cluster& cluster, float* scratch);
  // Those of samples [first, end); sets the group's sums (null is the first group).
  void (*cluster_bwd)(const Pass& pass, const Cluster& cluster, int64_t first, int64_t end, float* group,
                      float* scratch);
};

}  // namespace gatelight
