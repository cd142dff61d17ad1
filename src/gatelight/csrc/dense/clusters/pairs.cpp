#include "dense/clusters/pairs.h"

namespace gatelight {
namespace {

// The cluster of an input. Unsigned: a division is a shift then.
inline uint32_t cluster_of(int32_t input, uint32_t last) {
  return std::min(static_cast<uint32_t>(input) / CLUSTER, last);
}

template <int N>
bool reads_inside_clusters(const GlLayer& layer) {
  const uint32_t last = static_cast<uint32_t>(cluster_count(layer.in) - 1);
  const int64_t step = 4096;  // gates between two looks at the result
  for (int64_t first = 0; first < layer.gates; first += step) {
    const int32_t* fanin = layer.fanin + first * N;
    const int64_t gates = std::min(step, layer.gates - first);
    uint32_t apart = 0;
    for (int64_t j = 0; j < gates; j++)
      for (int k = 1; k < N; k++) apart |= cluster_of(fanin[j * N], last) ^ cluster_of(fanin[j * N + k], last);
    if (apart) return false;
  }
  return true;
}

bool reads_inside_clusters(const GlLayer& layer) {
  switch (layer.arity) {
    case 1: return true;
    case 2: return reads_inside_clusters<2>(layer);
    case 3: return reads_inside_clusters<3>(layer);
    case 4: return reads_inside_clusters<4>(layer);
    case 5: return reads_inside_clusters<5>(layer);
    default: return reads_inside_clusters<6>(layer);
  }
}

// Gates of the layer by the cluster that they read.
Pair by_input(const GlLayer& layer) {
  const int64_t clusters = cluster_count(layer.in);
  const uint32_t last = static_cast<uint32_t>(clusters - 1);
  std::vector<GateRun> found;
  std::vector<uint32_t> of_run;
  std::vector<int64_t> gates(clusters), next(clusters + 1);
  for (int64_t j = 0; j < layer.gates;) {
    const int64_t first = j;
    const uint32_t cluster = cluster_of(layer.fanin[j * layer.arity], last);
    while (j < layer.gates && cluster_of(layer.fanin[j * layer.arity], last) == cluster) j++;
    found.push_back({first, j - first});
    of_run.push_back(cluster);
    gates[cluster] += j - first;
    next[cluster + 1]++;
  }
  Pair pair{};
  pair.most_gates = *std::max_element(gates.begin(), gates.end());
  for (int64_t k = 0; k < clusters; k++) next[k + 1] += next[k];
  pair.begins = next;
  pair.runs.resize(found.size());
  for (size_t r = 0; r < found.size(); r++) pair.runs[next[of_run[r]]++] = found[r];
  return pair;
}

// Gates of the layer in the order in which they are.
Pair by_place(const GlLayer& layer) {
  Pair pair{};
  for (int64_t j = 0; j < layer.gates; j += CLUSTER) {
    pair.runs.push_back({j, std::min<int64_t>(CLUSTER, layer.gates - j)});
    pair.begins.push_back(static_cast<int64_t>(pair.begins.size()));
  }
  pair.begins.push_back(static_cast<int64_t>(pair.begins.size()));
  pair.most_gates = pair.runs[0].gates;
  return pair;
}

}  // namespace

std::vector<int> find_pairs(const GlLayer* layers, int count) {
  std::vector<int> sizes;
  int paired = 0;
  for (int l = 0; l < count; l += sizes.back()) {
    const bool two = l + 1 < count && layers[l].gates >= CLUSTERED && reads_inside_clusters(layers[l + 1]);
    sizes.push_back(two ? 2 : 1);
    paired += two ? 2 : 0;
  }
  return paired > 0 && 2 * paired >= count ? sizes : std::vector<int>();
}

std::vector<Pair> make_pairs(const Layer* layers, const std::vector<int>& sizes) {
  std::vector<Pair> pairs;
  int l = 0;
  for (const int size : sizes) {
    pairs.push_back(size == 2 ? by_input(layers[l + 1]) : by_place(layers[l]));
    pairs.back().first = l;
    pairs.back().layers = size;
    l += size;
  }
  return pairs;
}

}  // namespace gatelight
