// A pass with its layers, the sizes that follow from them, and the order in which layers are processed.
//
// A pass takes its layers in segments: all tiles through one segment, then all through the next. Coefficients and sums
// exist for one segment at a time. Stacks that keep their activations are one segment; those that recompute them
// have segments of SEGMENT layers and at most SNAPSHOTS copies of activations between segments, whatever the depth.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "dense/clusters/pairs.h"
#include "dense/kernels.h"
#include "parametrize/chunks.h"
#include "runtime/scratch.h"

namespace gatelight {

constexpr int SNAPSHOTS = 3;

// Backward needs the input of every segment, last to first, and there is room for only a few: where to put them so
// that the fewest segments are recomputed (Griewank and Walther, 2000).
class Splits {
 public:
  Splits(int segments, int room) : cost_(room + 1, std::vector<int64_t>(segments + 1, NEVER)), best_(cost_) {
    for (std::vector<int64_t>& row : cost_) row[1] = 0;
    for (int c = 1; c <= room; c++)
      for (int n = 2; n <= segments; n++)
        for (int m = 1; m < n; m++) {
          const int64_t cost = m + cost_[c - 1][n - m] + cost_[c][m];
          if (cost >= cost_[c][n]) continue;
          cost_[c][n] = cost;
          best_[c][n] = m;
        }
  }
  // How many of `segments` (2 or more) to run to the next snapshot, with room for `room` (1 or more) of them.
  int operator()(int segments, int room) const { return static_cast<int>(best_[room][segments]); }

 private:
  static constexpr int64_t NEVER = std::numeric_limits<int64_t>::max() / 4;
  std::vector<std::vector<int64_t>> cost_, best_;
};

// Whether nearly every gate's first input is the last one of the gate before it (wiring/linking.py). Judged by a
// sample: the answer decides how fast a layer is, not what it computes.
inline bool linked(const GlLayer& layer) {
  constexpr int64_t SAMPLE = 64;
  if (layer.arity != 2 || layer.gates <= SAMPLE) return false;
  int64_t links = 0;
  for (int64_t i = 1; i <= SAMPLE; i++) {
    const int32_t* gate = layer.fanin + 2 * (i * (layer.gates - 1) / SAMPLE);
    links += gate[0] == gate[-1];
  }
  return links >= SAMPLE * 7 / 8;
}

struct Plan {
  std::vector<Layer> layers;
  Pass pass{};
  int segment = 1;           // layers in a segment
  int64_t coefficients = 0;  // floats of a segment's coefficients, and of one group of its sums
  int groups = 1;
  std::vector<int> pairs;  // layers of each pair if the stack is processed cluster by cluster
  bool ok = false;

  // `whole`: all layers in one segment.
  Plan(const GlLayer* given, int32_t count, int64_t batch, int32_t mode, bool whole) {
    if (!given || count < 1 || batch < 0 || mode < GL_RECOMPUTE || mode > GL_KEEP_BF16) return;
    segment = whole || mode != GL_RECOMPUTE ? count : SEGMENT;
    int arity = 1;
    int64_t widest = given[0].in, offset = 0;
    for (int32_t l = 0; l < count; l++) {
      const GlLayer& g = given[l];
      if (!find_map(g.kind, g.arity) || g.gates < 1 || g.in < 1 || (l > 0 && g.in != given[l - 1].gates)) return;
      if (l % segment == 0) offset = 0;
      layers.push_back(make_layer(g, offset, linked(g)));
      offset += round_up(g.gates << g.arity, 16);
      coefficients = std::max(coefficients, offset);
      arity = std::max<int>(arity, g.arity);
      widest = std::max(widest, g.gates);
    }
    pass.layers = layers.data();
    pass.count = count;
    pass.batch = batch;
    pass.width = batch == 1 ? 1 : TILE;
    pass.mode = mode;
    pass.widest = widest;
    // The sums of fixed groups of tiles are added in a fixed order: the same bits for any number of threads. A group
    // costs 4 * 2^arity bytes for each gate, so that groups are few where the batch is small.
    const int64_t most = std::min(pass.tiles() / 2, batch >> (arity + 1));
    groups = fused() ? 1 : static_cast<int>(std::max<int64_t>(2, std::min<int64_t>(16, most)));
    if (mode == GL_KEEP && !fused()) pairs = find_pairs(given, count);
    if (!pairs.empty()) groups = static_cast<int>(std::min<int64_t>(groups, pass.wide_tiles()));
    ok = true;
  }

  // A batch of one tile uses each coefficient once: they are made on the fly and never written to memory.
  bool fused() const { return pass.tiles() < 2; }

  int segments() const { return (pass.count + segment - 1) / segment; }
  int snapshots() const { return std::min(SNAPSHOTS, segments() - 1); }
  Span span(int s, const float* from, float* to) const {
    return {s * segment, std::min(pass.count, (s + 1) * segment), from, to};
  }

  // Floats of the activations, or their gradients, between two segments.
  int64_t between() const { return pass.tile_floats() * pass.tiles(); }
  int64_t coefficient_bytes() const { return fused() ? 0 : 4 * coefficients; }

  // What forward leaves: snapshots, or the coefficients of the one segment and what is kept.
  int64_t save_bytes() const {
    if (segments() > 1) return 4 * between() * snapshots();
    int64_t bytes = coefficient_bytes();
    if (pass.mode == GL_RECOMPUTE) return bytes;
    if (!pairs.empty()) return bytes + pairs_bytes();
    for (int l = 0; l + 1 < pass.count; l++) bytes += pass.saved_values(l) * pass.value_bytes();
    return bytes;
  }

  // Where layers come in pairs, the input of each pair is kept, rows padded and a few more of them.
  int64_t pairs_bytes() const {
    int64_t rows = 0;
    for (int p = 0, l = 0; p < static_cast<int>(pairs.size()); l += pairs[p++]) rows += layers[l].in + SPARE_ROWS;
    return 4 * rows * pass.padded_batch();
  }

  // The first group's sums fit into grad_theta unless their last run of 16 would stick out.
  static bool in_place(const Layer& l) {
    return l.grad_theta && l.parameters == 1 << l.arity && (l.gates << l.arity) % 16 == 0;
  }

  int64_t sums_bytes() const {
    if (fused()) return 0;
    const bool all = std::all_of(layers.begin(), layers.end(), in_place);
    return 4 * coefficients * (groups - (all ? 1 : 0));
  }

  // Groups after the first come first, then the sums of the first group that are not in grad_theta.
  void place_sums(float* sums) {
    if (fused()) return;
    for (Layer& l : layers) l.first_sums = in_place(l) ? l.grad_theta : sums + coefficients * (groups - 1) + l.offset;
  }

  // Threads of backward: groups are its items, and tiles where segments are recomputed.
  int backward_slots() const { return slots(segments() == 1 ? groups : pass.tiles()); }

  void place_coefficients(float* memory) {
    if (fused()) return;
    for (Layer& layer : layers) layer.coefficients = memory + layer.offset;
  }

  std::vector<const Layer*> layers_of(int s) const {
    std::vector<const Layer*> found;
    for (int l = s * segment; l < std::min(pass.count, (s + 1) * segment); l++) found.push_back(&layers[l]);
    return found;
  }

  void make_coefficients(int s) const {
    if (!fused()) gatelight::make_coefficients(layers_of(s));
  }

  // grad_theta of a segment's layers from the sums of all groups.
  void make_grads(int s, const float* sums) const {
    if (fused()) return;
    for_chunks(layers_of(s), [&](const Layer& layer, int64_t first, int64_t gates) {
      const int64_t at = first << layer.arity;
      path().parameters.grads(layer, first, gates, layer.first_sums + at, sums + layer.offset + at, coefficients,
                              groups - 1);
    });
  }
};

}  // namespace gatelight
