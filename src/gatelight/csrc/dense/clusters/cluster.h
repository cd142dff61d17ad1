// A cluster of gates as the kernels see it; dense/clusters/pairs.h says what clusters are for.
#pragma once

#include "dense/pass.h"

namespace gatelight {

// Gates of a cluster, the most that the last one has, and gates from which on a layer is taken in
// clusters. wiring/clustered.py uses the same numbers; tests set them lower.
#if !defined(GL_CLUSTER)
#define GL_CLUSTER 1024
#endif
constexpr int32_t CLUSTER = GL_CLUSTER;
constexpr int64_t CLUSTER_ROWS = 2 * CLUSTER - 1;
constexpr int64_t CLUSTERED = 32 * CLUSTER;

// Gates of a layer that follow one another.
struct GateRun {
  int64_t first, gates;
};

// A cluster of a pair of layers (pairs.h). Rows before and after the pair are those of one tile after the other.
struct Cluster {
  const Layer *inner, *last;  // the two layers; inner is null if there is only one
  GateRun gates;              // of the inner layer
  const GateRun* run;         // of the last
  int64_t runs;
  int64_t most_gates;  // of the last layer in any cluster of the pair
  const float* rows_from;
  float* rows_to;              // forward: null for the pass's output
  bool streams;                // whether rows_to is aligned, to be written past the caches
  float* grads_from;           // backward: null where they are not wanted
  float* grads_to;             // backward: null for the pass's out-gradients
  int64_t room_from, room_to;  // rows that each sample has before and after the pair

  // The tile that begins at a sample.
  const float* from(int64_t sample) const { return rows_from + sample * room_from; }
  float* to(int64_t sample) const { return rows_to + sample * room_to; }
  float* grad_from(int64_t sample) const { return grads_from ? grads_from + sample * room_from : nullptr; }
  float* grad_to(int64_t sample) const { return grads_to + sample * room_to; }
};

// A thread's memory for clusters, and where its parts begin.
struct ClusterScratch {
  float* gradients;  // of the inner layer's outputs, zero between clusters
  float* values;     // the outputs themselves
  float* some;       // rows of a run at the stack's end, where the caller's matrix does not serve
  float* sums;       // of the last layer's runs, one after the other
  int32_t* fanin;    // of the last layer, inside the cluster

  ClusterScratch(const Cluster& c, float* memory) {
    gradients = memory;
    values = gradients + CLUSTER_ROWS * WIDE_TILE;
    some = values + CLUSTER_ROWS * WIDE_TILE;
    sums = some + c.most_gates * WIDE_TILE;
    fanin = reinterpret_cast<int32_t*>(sums + (c.most_gates << c.last->arity) + 16);
  }
};
inline int64_t cluster_scratch(const Cluster& c) {
  return (2 * CLUSTER_ROWS + c.most_gates) * WIDE_TILE + c.most_gates * (c.last->arity + (1 << c.last->arity)) + 16;
}

}  // namespace gatelight
