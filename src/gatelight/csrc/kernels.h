// What each SIMD path offers to the rest of the library: functions that work on one tile or one run of gates.
#pragma once

#include <cstdint>

#include "gatelight.h"

namespace gatelight {

constexpr int MAX_ARITY = 6;
constexpr int TILE = 16;
constexpr int WIDE_TILE = 32;  // where layers are worked on cluster by cluster
// Rows more than a layer has: where their number is a multiple of a page, a value and its gradient would lie in the
// same few lines of the first cache.
constexpr int SPARE_ROWS = 5;
// Layers whose activations are computed again before gradients go back through them; at least 2. Tests set it lower.
#if !defined(GL_SEGMENT)
#define GL_SEGMENT 8
#endif
constexpr int SEGMENT = GL_SEGMENT;
// Gates whose coefficients are made at a time: the largest arity's then take 16 KiB.
constexpr int BLOCK = 64;

// Gates of a cluster (clusters.h), the most that the last one has, and gates from which on a layer is taken in
// clusters. nn/wiring.py wires by the same numbers; tests set them lower.
#if !defined(GL_CLUSTER)
#define GL_CLUSTER 1024
#endif
constexpr int32_t CLUSTER = GL_CLUSTER;
constexpr int64_t CLUSTER_ROWS = 2 * CLUSTER - 1;
constexpr int64_t CLUSTERED = 32 * CLUSTER;

struct Layer : GlLayer {
  const float* quads;  // coefficients [gates, 2^arity]; null: made from theta on the fly (batches of one tile)
  int64_t offset;      // where this layer's sums start in a segment's buffer, in floats, a multiple of 16
  float* first_sums;   // the first group's sums, in grad_theta itself where their sizes agree
  bool linked;         // nearly every gate of two inputs reads first what the gate before it reads last

  float* sums(float* group) const { return group ? group + offset : first_sums; }
};

// One forward or backward pass over the stack. A tile is `width` samples (16, or 1 for a batch of one); inside a tile,
// activations and their gradients are rows of `width` floats.
struct Pass {
  const Layer* layers;
  int count;
  int64_t batch;
  int width;
  int mode;
  int64_t widest;  // most rows of any layer or of the input
  GlMatrix x, out, grad_out, grad_x;
  char* saved;  // keep: hidden activations by layer, then tile, then row; rows of the last tile cut to its samples

  int64_t tile_floats() const { return (widest + SPARE_ROWS) * width; }
  int64_t tiles() const { return (batch + width - 1) / width; }
  int samples(int64_t tile) const {
    const int64_t left = batch - tile * width;
    return left < width ? (int)left : width;
  }
  // Tiles of stacks that are worked on cluster by cluster. The rows of the last one are padded to TILE or to WIDE_TILE.
  int64_t wide_tiles() const { return (batch + WIDE_TILE - 1) / WIDE_TILE; }
  int wide_samples(int64_t first) const { return batch - first < WIDE_TILE ? (int)(batch - first) : WIDE_TILE; }
  int64_t padded_batch() const { return (batch + TILE - 1) / TILE * TILE; }
  int value_bytes() const { return mode == GL_KEEP_BF16 ? 2 : 4; }
  // All tiles before the last are full, so a layer takes gates * batch values; layers start on a cache line.
  int64_t saved_values(int layer) const { return (layers[layer].gates * batch + 31) / 32 * 32; }
  char* saved_rows(int layer, int64_t tile) const {
    int64_t before = layers[layer].gates * tile * width;
    for (int i = 0; i < layer; i++) before += saved_values(i);
    return saved + before * value_bytes();
  }
};

// Layers [begin, end) and what lies on either side: rows of all tiles, pass.tile_floats() for each tile. `from` is null
// where begin is the first layer; `to` is where forward leaves the outputs (null after the last layer) and backward
// finds the out-gradients (unless it starts at the last layer) and leaves those of the inputs (unless it ends at the
// first).
struct Span {
  int begin, end;
  const float* from;
  float* to;
};

// Gates of a layer that follow one another.
struct GateRun {
  int64_t first, gates;
};

// A cluster of a pair of layers (clusters.h). Rows before and after the pair are those of one tile after the other.
struct Cluster {
  const Layer *inner, *last;  // the two layers; inner is null where there is only one
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

// Floats of scratch a thread needs.
inline int64_t forward_scratch(const Pass& p) { return 2 * p.tile_floats(); }
inline int64_t backward_scratch(const Pass& p) {
  const int values = p.mode != GL_RECOMPUTE ? 2 : p.count < SEGMENT ? p.count : SEGMENT;
  return p.tile_floats() * (2 + values);
}

struct Kernels {
  const char* name;
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
  // Coefficients of `gates` gates from `first` on.
  void (*quads)(const Layer& layer, int64_t first, int64_t gates, float* quads);
  // grad_theta of the same from the first group's sums and those of `more` groups, group_stride apart, added in order.
  void (*grads)(const Layer& layer, int64_t first, int64_t gates, const float* sums, const float* others,
                int64_t group_stride, int more);
  void (*tables)(int kind, int arity, const float* theta, int64_t gates, float* table);
  void (*tables_bwd)(int kind, int arity, const float* theta, const float* grad, int64_t gates, float* grad_theta);
};

extern const Kernels kernels_base;
#if defined(GL_HAVE_X86)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

}  // namespace gatelight
