// Forward and backward of one cluster of a pair of layers, tile by tile.
//
// Tiles are twice as wide as elsewhere, because a cluster's rows still fit into the cache: coefficients and
// indices are loaded half as often, and half as many sums are reduced. A last one of at most TILE samples is not.
#pragma once

#include <string.h>

#include "dense/clusters/cluster.h"
#include "dense/stack.h"

namespace gatelight {
namespace GL_PATH {

// Where the last layer's gates read among the rows of the cluster, run after run.
inline void local_fanin(const Cluster& cluster, int32_t* fanin) {
  if (!cluster.inner) return;
  const Layer& layer = *cluster.last;
  for (int64_t r = 0; r < cluster.runs; r++) {
    const GateRun& run = cluster.run[r];
    for (int64_t i = run.first * layer.arity; i < (run.first + run.gates) * layer.arity; i++)
      *fanin++ = layer.fanin[i] - static_cast<int32_t>(cluster.gates.first);
  }
}

inline Wires inner_wires(const Cluster& cluster) {
  return wires(*cluster.inner, cluster.gates.first, false);
}

// Where gates of the last layer read: the cluster's rows, or, if it is the only layer, the pair's input.
GL_INLINE Wires last_wires(const Cluster& cluster, const GateRun& run, const int32_t* local) {
  if (cluster.inner) return {local, run.gates, false, cluster.last->linked};
  return wires(*cluster.last, run.first, false);
}

template <int W>
inline void cluster_tile_fwd(const Pass& pass, const Cluster& cluster, int64_t sample, int samples,
                             const ClusterScratch& scratch) {
  const Layer& last = *cluster.last;
  const float* x = cluster.from(sample);
  if (const Layer* inner = cluster.inner) {
    gates_fwd<W>(inner->arity, x, inner_wires(cluster), inner->coefficients + (cluster.gates.first << inner->arity),
                 cluster.gates.gates, {scratch.values, W, nullptr});
    x = scratch.values;
  }
  const int32_t* fanin = scratch.fanin;
  for (int64_t r = 0; r < cluster.runs; r++) {
    const GateRun& run = cluster.run[r];
    const Wires to_read = last_wires(cluster, run, fanin);
    const float* coefficients = last.coefficients + (run.first << last.arity);
    const GlMatrix out = {pass.out.data + run.first * pass.out.stride, pass.out.stride, 0};
    if (cluster.rows_to) {
      float* to = cluster.to(sample) + run.first * W;
      gates_fwd<W>(last.arity, x, to_read, coefficients, run.gates, {to, W, cluster.streams ? to : nullptr});
    } else if (samples == W) {
      gates_fwd<W>(last.arity, x, to_read, coefficients, run.gates, {out.data + sample, out.stride, nullptr});
    } else {
      gates_fwd<W>(last.arity, x, to_read, coefficients, run.gates, {scratch.some, W, nullptr});
      unpack<W>(scratch.some, run.gates, out, sample, samples);
    }
    fanin += run.gates * last.arity;
  }
}

// Sums of the run are set, or added to (`accumulate`).
template <int W>
inline void run_of_gates_bwd(const Layer& layer, int64_t first, int64_t gates, const float* x, float* gx,
                             const Wires& to_read, const Gradient& from, float* sums, bool accumulate) {
  const float* coefficients = layer.coefficients + (first << layer.arity);
  if (gx) gates_bwd<W, true>(layer.arity, x, gx, to_read, coefficients, gates, from, sums, accumulate);
  else gates_bwd<W, false>(layer.arity, x, nullptr, to_read, coefficients, gates, from, sums, accumulate);
}

template <int W>
inline void cluster_tile_bwd(const Pass& pass, const Cluster& cluster, int64_t sample, int samples, float* inner_sums,
                             bool accumulate, const ClusterScratch& scratch) {
  const Layer &last = *cluster.last, *inner = cluster.inner;
  const float *x = cluster.from(sample), *last_x = x;
  float *gx = cluster.grad_from(sample), *last_gx = gx;
  if (inner) {
    gates_fwd<W>(inner->arity, x, inner_wires(cluster), inner->coefficients + (cluster.gates.first << inner->arity),
                 cluster.gates.gates, {scratch.values, W, nullptr});
    last_x = scratch.values;
    last_gx = scratch.gradients;
  }
  const int32_t* fanin = scratch.fanin;
  float* sums = scratch.sums;
  for (int64_t r = 0; r < cluster.runs; r++) {
    const GateRun& run = cluster.run[r];
    Gradient from = {scratch.some, W, false};
    if (cluster.grads_to) {
      from = {cluster.grad_to(sample) + run.first * W, W, true};
    } else {
      const GlMatrix& whole = pass.grad_out;
      const GlMatrix rows = {whole.data + run.first * (whole.sample_major ? 1 : whole.stride), whole.stride,
                             whole.sample_major};
      if (samples == W && !whole.sample_major) from = {rows.data + sample, rows.stride, false};
      else pack<W>(rows, sample, samples, run.gates, Pad::Zero, scratch.some);
    }
    run_of_gates_bwd<W>(last, run.first, run.gates, last_x, last_gx, last_wires(cluster, run, fanin), from, sums,
                        accumulate);
    fanin += run.gates * last.arity;
    sums += run.gates << last.arity;
  }
  if (inner)
    run_of_gates_bwd<W>(*inner, cluster.gates.first, cluster.gates.gates, x, gx, inner_wires(cluster),
                        Gradient{scratch.gradients, W, true}, inner_sums, accumulate);
}

inline void cluster_fwd(const Pass& pass, const Cluster& cluster, float* memory) {
  const ClusterScratch scratch(cluster, memory);
  local_fanin(cluster, scratch.fanin);
  for (int64_t s = 0; s < pass.batch; s += WIDE_TILE) {
    const int samples = pass.wide_samples(s);
    if (samples <= TILE) cluster_tile_fwd<TILE>(pass, cluster, s, samples, scratch);
    else cluster_tile_fwd<WIDE_TILE>(pass, cluster, s, samples, scratch);
  }
  finish_streams();
}

inline void cluster_bwd(const Pass& pass, const Cluster& cluster, int64_t first, int64_t end, float* group,
                        float* memory) {
  const ClusterScratch scratch(cluster, memory);
  const Layer &last = *cluster.last, *inner = cluster.inner;
  // Sums are written sixteen at a time, and so zeros after the end of a run, where the next run's sums come afterwards.
  // In the group's array another cluster's may be there already: a run may begin anywhere, the inner gates may not.
  float* const inner_sums = inner ? inner->sums(group) + (cluster.gates.first << inner->arity) : nullptr;
  local_fanin(cluster, scratch.fanin);
  for (int64_t s = first; s < end; s += WIDE_TILE) {
    const int samples = pass.wide_samples(s);
    if (samples <= TILE) cluster_tile_bwd<TILE>(pass, cluster, s, samples, inner_sums, s > first, scratch);
    else cluster_tile_bwd<WIDE_TILE>(pass, cluster, s, samples, inner_sums, s > first, scratch);
  }
  const float* sums = scratch.sums;
  for (int64_t r = 0; r < cluster.runs; r++) {
    const GateRun& run = cluster.run[r];
    memcpy(last.sums(group) + (run.first << last.arity), sums, sizeof(float) * (run.gates << last.arity));
    sums += run.gates << last.arity;
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
