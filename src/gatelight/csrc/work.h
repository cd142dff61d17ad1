// What passes over dense and over convolutional layers share: work on parameters in chunks, and scratch for threads.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "dispatch.h"
#include "memory.h"
#include "pool.h"

namespace gatelight {

constexpr int64_t CHUNK = 1024;  // gates in an item of work on parameters

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

inline bool valid(int32_t kind, int32_t arity, int64_t gates) {
  return kind >= GL_TABLE && kind <= GL_SOFTMAX && arity >= 1 && arity <= (kind == GL_SOFTMAX ? 3 : MAX_ARITY) &&
         gates >= 1;
}

inline int64_t parameters(int32_t kind, int32_t arity) {
  return int64_t(1) << (kind == GL_SOFTMAX ? 1 << arity : arity);
}

// How many threads a job of so many items uses.
inline int slots(int64_t items) { return static_cast<int>(std::min<int64_t>(get_threads(), items)); }

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

// Coefficients of all gates of the layers, where each layer's `quads` points.
inline void make_quads(const std::vector<const Layer*>& layers) {
  for_chunks(layers, [](const Layer& layer, int64_t first, int64_t gates) {
    kernels().quads(layer, first, gates, const_cast<float*>(layer.quads) + (first << layer.arity));
  });
}

// Scratch for each thread of a job; not ok when memory is short.
struct Scratch {
  std::vector<Block> blocks;
  bool ok = true;
  Scratch(int slots, int64_t floats) {
    for (int i = 0; i < slots; i++) {
      blocks.emplace_back(static_cast<size_t>(4 * floats));
      ok = ok && blocks.back().data;
    }
  }
};

}  // namespace gatelight
