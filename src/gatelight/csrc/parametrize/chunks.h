// Work on the parameters of layers, dense or convolutional: divided among the threads in chunks of gates.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "parametrize/kernels.h"
#include "runtime/paths.h"
#include "runtime/pool.h"

namespace gatelight {

constexpr int64_t CHUNK = 1024;  // gates in an item of work

// The map with this number; null if there is none or it does not take gates of this arity.
inline const Map* find_map(int32_t kind, int32_t arity) {
  const ParameterKernels& k = path().parameters;
  if (kind < 0 || kind >= k.map_count || arity < 1 || arity > k.maps[kind].max_arity) return nullptr;
  return &k.maps[kind];
}

// A layer as the kernels see it, without coefficients yet. Its map must exist.
inline Layer make_layer(const GlLayer& given, int64_t offset, bool linked) {
  const Map* map = find_map(given.kind, given.arity);
  return {given, map, map->parameters(given.arity), nullptr, offset, nullptr, linked};
}

// work(layer, first gate, gates) for every run of CHUNK gates of the layers.
template <class F>
void for_chunks(const std::vector<const Layer*>& layers, F work) {
  std::vector<std::pair<const Layer*, int64_t>> items;
  for (const Layer* layer : layers)
    for (int64_t j = 0; j < layer->gates; j += CHUNK) items.emplace_back(layer, j);
  parallel(static_cast<int64_t>(items.size()), [&](int64_t i, int) {
    const Layer& layer = *items[i].first;
    work(layer, items[i].second, std::min(CHUNK, layer.gates - items[i].second));
  });
}

// Coefficients of all gates of the layers, where each layer's `coefficients` points.
inline void make_coefficients(const std::vector<const Layer*>& layers) {
  for_chunks(layers, [](const Layer& layer, int64_t first, int64_t gates) {
    float* to = const_cast<float*>(layer.coefficients) + (first << layer.arity);
    path().parameters.coefficients(layer, first, gates, to);
  });
}

// grad_theta of an empty batch.
inline void zero_grads(const Layer& layer) {
  if (layer.grad_theta) std::fill_n(layer.grad_theta, layer.gates * layer.parameters, 0.0f);
}

}  // namespace gatelight
