// The exported functions for stacks of dense layers: checks, memory, and how a pass is cut into items for the threads.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "dense/clusters/pass.h"
#include "dense/plan.h"
#include "gatelight.h"

namespace gatelight {
namespace {

// All tiles through segments [first, end), from `from` (the input of the stack where null) to `to` (its output). `used`
// floats at the beginning of scratch are left alone.
void advance(const Plan& plan, const Scratch& scratch, int64_t used, int first, int end, const float* from, float* to) {
  const DenseKernels& k = path().dense;
  for (int s = first; s < end; s++) {
    plan.make_coefficients(s);
    const Span span = plan.span(s, s == first ? from : to, to);
    parallel(plan.pass.tiles(),
             [&](int64_t t, int slot) { k.forward_tile(plan.pass, span, t, scratch.blocks[slot].floats() + used); });
  }
}

int32_t forward(Plan& plan, GlMatrix x, GlMatrix out, void* save) {
  Pass& pass = plan.pass;
  pass.x = x;
  pass.out = out;
  if (!plan.pairs.empty()) return clusters_forward(plan, static_cast<float*>(save));
  const Scratch scratch(slots(pass.tiles()), forward_scratch(pass));
  const int segments = plan.segments();
  const bool own = !save || segments > 1;
  const Block coefficients(static_cast<size_t>(own ? plan.coefficient_bytes() : 0));
  if (!scratch.ok || !coefficients.data) return GL_NO_MEMORY;
  plan.place_coefficients(own ? coefficients.floats() : static_cast<float*>(save));
  if (save) pass.saved = static_cast<char*>(save) + plan.coefficient_bytes();
  const Splits split(segments, plan.snapshots());
  const float* from = nullptr;
  float* to = static_cast<float*>(save);
  int begin = 0;
  for (int room = plan.snapshots(); segments - begin > 1; room--) {
    const int middle = begin + split(segments - begin, room);
    advance(plan, scratch, 0, begin, middle, from, to);
    begin = middle;
    from = to;
    to += plan.between();
  }
  advance(plan, scratch, 0, begin, segments, from, nullptr);
  return GL_OK;
}

struct Backward {
  Plan& plan;
  const Splits& split;
  const Scratch& scratch;
  float *sums, *snapshots, *carried;
  bool has_coefficients;

  // Segments [begin, end), last to first. `ready`: forward has left the snapshots on the way to the last one.
  void run(int begin, int end, const float* from, int room, bool ready) const {
    while (end - begin > 1) {
      const int middle = begin + split(end - begin, room);
      float* to = snapshots + plan.between() * (plan.snapshots() - room);
      if (!ready) advance(plan, scratch, 2 * plan.pass.tile_floats(), begin, middle, from, to);
      run(middle, end, to, room - 1, ready);
      ready = false;
      end = middle;
    }
    segment(begin, from);
  }

  void segment(int s, const float* from) const {
    const Pass& pass = plan.pass;
    const DenseKernels& k = path().dense;
    if (!has_coefficients) plan.make_coefficients(s);
    const Span span = plan.span(s, from, carried);
    parallel(plan.groups, [&](int64_t g, int slot) {
      const int64_t first = pass.tiles() * g / plan.groups, end = pass.tiles() * (g + 1) / plan.groups;
      for (int64_t t = first; t < end; t++)
        k.backward_tile(pass, span, t, g ? sums + plan.coefficients * (g - 1) : nullptr, t > first,
                        scratch.blocks[slot].floats());
    });
    plan.make_grads(s, sums);
  }
};

int32_t backward(Plan& plan, GlMatrix x, GlMatrix grad_out, GlMatrix grad_x, void* save) {
  Pass& pass = plan.pass;
  pass.x = x;
  pass.grad_out = grad_out;
  pass.grad_x = grad_x;
  if (!plan.pairs.empty()) return clusters_backward(plan, static_cast<float*>(save));
  const int segments = plan.segments();
  const bool has_coefficients = save && segments == 1;
  const Block coefficients(static_cast<size_t>(has_coefficients ? 0 : plan.coefficient_bytes()));
  const Block sums(static_cast<size_t>(plan.sums_bytes()));
  const Block snapshots(static_cast<size_t>(save || segments == 1 ? 0 : plan.save_bytes()));
  const Block carried(static_cast<size_t>(segments == 1 ? 0 : 4 * plan.between()));
  const Scratch scratch(plan.backward_slots(), backward_scratch(pass));
  if (!coefficients.data || !sums.data || !snapshots.data || !carried.data || !scratch.ok) return GL_NO_MEMORY;
  plan.place_coefficients(has_coefficients ? static_cast<float*>(save) : coefficients.floats());
  plan.place_sums(sums.floats());
  if (save) pass.saved = static_cast<char*>(save) + plan.coefficient_bytes();
  for (const Block& block : scratch.blocks) std::memset(block.data, 0, sizeof(float) * 2 * pass.tile_floats());
  const Splits split(segments, plan.snapshots());
  float* states = save ? static_cast<float*>(save) : snapshots.floats();
  const Backward way{plan, split, scratch, sums.floats(), states, carried.floats(), has_coefficients};
  way.run(0, segments, nullptr, plan.snapshots(), save != nullptr);
  return GL_OK;
}

}  // namespace
}  // namespace gatelight

using namespace gatelight;

int64_t gl_save_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode) try {
  const Plan plan(layers, count, batch, mode, false);
  return plan.ok ? plan.save_bytes() : -1;
} catch (const std::bad_alloc&) {
  return -1;
}

int64_t gl_work_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode) try {
  const Plan plan(layers, count, batch, mode, false);
  if (!plan.ok) return -1;
  if (!plan.pairs.empty()) return clusters_work_bytes(plan);
  const int64_t between = plan.segments() == 1 ? 0 : plan.coefficient_bytes() + 4 * plan.between();
  return between + plan.sums_bytes() + 4 * plan.backward_slots() * backward_scratch(plan.pass);
} catch (const std::bad_alloc&) {
  return -1;
}

int32_t gl_stack_fwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x, GlMatrix out,
                     void* save) try {
  Plan plan(layers, count, batch, mode, !save);
  const bool missing = !save && mode != GL_RECOMPUTE && plan.save_bytes() > 0;
  if (!plan.ok || missing || out.sample_major) return GL_BAD_ARGUMENT;
  return batch == 0 ? static_cast<int32_t>(GL_OK) : forward(plan, x, out, save);
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_stack_bwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x, GlMatrix grad_out,
                     GlMatrix grad_x, const void* save) try {
  Plan plan(layers, count, batch, mode, false);
  const bool missing = !save && mode != GL_RECOMPUTE && plan.save_bytes() > 0;
  if (!plan.ok || missing || grad_x.sample_major) return GL_BAD_ARGUMENT;
  if (batch > 0) return backward(plan, x, grad_out, grad_x, const_cast<void*>(save));
  for (const Layer& layer : plan.layers) zero_grads(layer);
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}
