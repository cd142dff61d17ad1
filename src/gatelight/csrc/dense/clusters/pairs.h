// Which stacks are processed cluster by cluster, and in which order.
//
// A wide layer's activations of one tile outgrow the caches. Where the gates of the next layer read inside clusters of
// CLUSTER gates, the two layers are processed together, one cluster after another: what lies between them stays in
// the cache and is never kept, and coefficients come from memory once for many tiles. Only what lies between such pairs
// of layers is kept.
#pragma once

#include <algorithm>
#include <vector>

#include "dense/clusters/cluster.h"

namespace gatelight {

// Clusters of a layer of so many gates. The last one also takes the remainder.
inline int64_t cluster_count(int64_t gates) { return std::max<int64_t>(1, gates / CLUSTER); }

// Two layers, of which the second reads inside clusters of the first, or one layer alone, in clusters of its own gates.
struct Pair {
  int first, layers;
  std::vector<GateRun> runs;    // of the last layer's gates, by cluster
  std::vector<int64_t> begins;  // where a cluster's runs begin, and the end
  int64_t most_gates;           // of the last layer in one cluster

  int64_t clusters() const { return static_cast<int64_t>(begins.size()) - 1; }
};

// How many layers each pair of the stack has; nothing if less than half of the layers are in pairs of two.
std::vector<int> find_pairs(const GlLayer* layers, int count);

// The pairs themselves, given how many layers each has.
std::vector<Pair> make_pairs(const Layer* layers, const std::vector<int>& sizes);

}  // namespace gatelight
