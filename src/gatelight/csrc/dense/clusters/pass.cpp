#include "dense/clusters/pass.h"

#include <cstring>

namespace gatelight {
namespace {

int64_t room(int64_t rows) { return rows + SPARE_ROWS; }

// The passes' view of a pair: its clusters, and where the rows before and after it are.
class Clusters {
 public:
  Clusters(const Plan& plan, const Pair& pair) : pair_(pair) {
    common_.last = &plan.layers[pair.first + pair.layers - 1];
    common_.inner = pair.layers == 2 ? &plan.layers[pair.first] : nullptr;
    common_.most_gates = pair.most_gates;
    common_.room_from = room(plan.layers[pair.first].in);
    common_.room_to = room(common_.last->gates);
  }

  Cluster& common() { return common_; }

  Cluster operator[](int64_t k) const {
    Cluster cluster = common_;
    if (cluster.inner) {
      const int64_t first = k * CLUSTER, end = k + 1 < pair_.clusters() ? first + CLUSTER : cluster.inner->gates;
      cluster.gates = {first, end - first};
    }
    cluster.run = pair_.runs.data() + pair_.begins[k];
    cluster.runs = pair_.begins[k + 1] - pair_.begins[k];
    return cluster;
  }

 private:
  const Pair& pair_;
  Cluster common_{};
};

// Floats of the rows before a pair, of all samples.
int64_t rows_before(const Plan& plan, int layer) { return room(plan.layers[layer].in) * plan.pass.padded_batch(); }

// Where the rows before each pair begin in what forward leaves.
std::vector<float*> states(const Plan& plan, const std::vector<Pair>& pairs, float* save) {
  std::vector<float*> found;
  save += plan.coefficient_bytes() / 4;
  for (const Pair& pair : pairs) {
    found.push_back(save);
    save += rows_before(plan, pair.first);
  }
  return found;
}

int64_t scratch_floats(const Plan& plan, const std::vector<Pair>& pairs) {
  int64_t most = 0;
  for (const Pair& pair : pairs) most = std::max(most, cluster_scratch(Clusters(plan, pair).common()));
  return most;
}

// Floats of the gradients before the pairs, which two blocks hold alternately.
struct Gradients {
  int64_t floats[2] = {0, 0};
  Gradients(const Plan& plan, const std::vector<Pair>& pairs) {
    for (size_t p = plan.pass.grad_x.data ? 0 : 1; p < pairs.size(); p++)
      floats[p % 2] = std::max(floats[p % 2], rows_before(plan, pairs[p].first));
  }
};

}  // namespace

int32_t clusters_forward(Plan& plan, float* save) {
  const Pass& pass = plan.pass;
  const DenseKernels& k = path().dense;
  const std::vector<Pair> pairs = make_pairs(plan.layers.data(), plan.pairs);
  int64_t most = 0;
  for (const Pair& pair : pairs) most = std::max(most, pair.clusters());
  const Scratch scratch(slots(most), scratch_floats(plan, pairs));
  if (!scratch.ok) return GL_NO_MEMORY;
  plan.place_coefficients(save);
  plan.make_coefficients(0);
  const std::vector<float*> rows = states(plan, pairs, save);
  const int64_t input = room(plan.layers[0].in);
  parallel(pass.wide_tiles(), [&](int64_t t, int) { k.pack(pass, t * WIDE_TILE, rows[0] + t * WIDE_TILE * input); });
  for (size_t p = 0; p < pairs.size(); p++) {
    Clusters clusters(plan, pairs[p]);
    clusters.common().rows_from = rows[p];
    clusters.common().rows_to = p + 1 < pairs.size() ? rows[p + 1] : nullptr;
    clusters.common().streams = reinterpret_cast<uintptr_t>(save) % 64 == 0;
    parallel(pairs[p].clusters(),
             [&](int64_t i, int slot) { k.cluster_fwd(pass, clusters[i], scratch.blocks[slot].floats()); });
  }
  return GL_OK;
}

int32_t clusters_backward(Plan& plan, float* save) {
  const Pass& pass = plan.pass;
  const DenseKernels& k = path().dense;
  const std::vector<Pair> pairs = make_pairs(plan.layers.data(), plan.pairs);
  const Gradients sizes(plan, pairs);
  const Block gradients[2] = {Block(static_cast<size_t>(4 * sizes.floats[0])),
                              Block(static_cast<size_t>(4 * sizes.floats[1]))};
  const Block sums(static_cast<size_t>(plan.sums_bytes()));
  const int threads = plan.backward_slots();
  const Scratch scratch(threads, scratch_floats(plan, pairs));
  if (!gradients[0].data || !gradients[1].data || !sums.data || !scratch.ok) return GL_NO_MEMORY;
  // Gradients are added up in these and zeroed as they are read.
  for (int i = 0; i < 2; i++) std::memset(gradients[i].data, 0, static_cast<size_t>(4 * sizes.floats[i]));
  for (const Block& block : scratch.blocks) std::memset(block.data, 0, sizeof(float) * CLUSTER_ROWS * WIDE_TILE);
  plan.place_coefficients(save);
  plan.place_sums(sums.floats());
  const std::vector<float*> rows = states(plan, pairs, save);
  auto group_begin = [&](int64_t g) {
    return std::min(pass.batch, pass.wide_tiles() * g / plan.groups * WIDE_TILE);
  };
  // Threads must not write to the same gradient, so they divide the tiles. One thread takes all tiles of a cluster.
  const int64_t items = threads > 1 ? plan.groups : 1;
  for (size_t p = pairs.size(); p-- > 0;) {
    Clusters clusters(plan, pairs[p]);
    clusters.common().rows_from = rows[p];
    clusters.common().grads_from = p > 0 || pass.grad_x.data ? gradients[p % 2].floats() : nullptr;
    clusters.common().grads_to = p + 1 < pairs.size() ? gradients[(p + 1) % 2].floats() : nullptr;
    parallel(items, [&](int64_t item, int slot) {
      for (int64_t i = 0; i < pairs[p].clusters(); i++)
        for (int64_t g = plan.groups * item / items; g < plan.groups * (item + 1) / items; g++)
          k.cluster_bwd(pass, clusters[i], group_begin(g), group_begin(g + 1),
                        g ? sums.floats() + plan.coefficients * (g - 1) : nullptr, scratch.blocks[slot].floats());
    });
  }
  const int64_t input = room(plan.layers[0].in);
  if (pass.grad_x.data)
    parallel(pass.wide_tiles(), [&](int64_t t, int) {
      k.unpack(pass, t * WIDE_TILE, gradients[0].floats() + t * WIDE_TILE * input);
    });
  plan.make_grads(0, sums.floats());
  return GL_OK;
}

int64_t clusters_work_bytes(const Plan& plan) {
  const std::vector<Pair> pairs = make_pairs(plan.layers.data(), plan.pairs);
  const Gradients sizes(plan, pairs);
  const int64_t scratch = plan.backward_slots() * scratch_floats(plan, pairs);
  return plan.sums_bytes() + 4 * (sizes.floats[0] + sizes.floats[1] + scratch);
}

}  // namespace gatelight
