// The exported functions: checks, memory, and how a pass is cut into items for the threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include "dispatch.h"
#include "gatelight.h"
#include "memory.h"
#include "pool.h"

namespace gatelight {
namespace {

constexpr int64_t CHUNK = 1024;  // gates in an item of work on parameters

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

bool valid(int32_t kind, int32_t arity, int64_t gates) {
  return kind >= GL_TABLE && kind <= GL_SOFTMAX && arity >= 1 && arity <= (kind == GL_SOFTMAX ? 3 : MAX_ARITY) &&
         gates >= 1;
}

int64_t parameters(int32_t kind, int32_t arity) { return int64_t(1) << (kind == GL_SOFTMAX ? 1 << arity : arity); }

// A pass with its layers, and the sizes that follow from them.
struct Plan {
  std::vector<Layer> layers;
  Pass pass{};
  int64_t quads = 0;  // floats of coefficients, and of one group of sums
  int groups = 1;
  bool ok = false;

  Plan(const GlLayer* given, int32_t count, int64_t batch, int32_t mode) {
    if (!given || count < 1 || batch < 0 || mode < GL_RECOMPUTE || mode > GL_KEEP_BF16) return;
    int arity = 1;
    int64_t widest = given[0].in;
    for (int32_t l = 0; l < count; l++) {
      const GlLayer& g = given[l];
      if (!valid(g.kind, g.arity, g.gates) || g.in < 1 || (l > 0 && g.in != given[l - 1].gates)) return;
      layers.push_back({g, nullptr, quads, nullptr});
      quads += round_up(g.gates << g.arity, 16);
      arity = std::max<int>(arity, g.arity);
      widest = std::max(widest, g.gates);
    }
    pass.layers = layers.data();
    pass.count = count;
    pass.batch = batch;
    pass.width = batch == 1 ? 1 : TILE;
    pass.mode = mode;
    // Checkpoints of a tile: few enough that its layers stay in the cache, the memory ~ the square root of the depth.
    pass.segment = std::min<int>(count, std::max<int>(8, static_cast<int>(std::sqrt(count / 2.0))));
    pass.widest = widest;
    // The sums of fixed groups of tiles are added in a fixed order: the same bits for any number of threads. A group
    // costs 4 * 2^arity bytes for each gate, so that groups are few where the batch is small.
    const int64_t most = std::min(pass.tiles() / 2, batch >> (arity + 1));
    groups = fused() ? 1 : static_cast<int>(std::max<int64_t>(2, std::min<int64_t>(16, most)));
    ok = true;
  }

  // A batch of one tile uses each coefficient once: they are made on the fly and never written to memory.
  bool fused() const { return pass.tiles() < 2; }

  int64_t quads_bytes() const { return fused() ? 0 : 4 * quads; }

  int64_t save_bytes() const {
    int64_t bytes = quads_bytes();
    if (pass.mode == GL_RECOMPUTE) return bytes;
    for (int l = 0; l + 1 < pass.count; l++) bytes += pass.saved_values(l) * pass.value_bytes();
    return bytes;
  }

  // The first group's sums fit into grad_theta unless their last run of 16 would stick out.
  static bool in_place(const Layer& l) {
    return l.grad_theta && l.kind != GL_SOFTMAX && (l.gates << l.arity) % 16 == 0;
  }

  int64_t sums_bytes() const {
    if (fused()) return 0;
    int64_t floats = quads * (groups - 1);
    for (const Layer& l : layers) floats += in_place(l) ? 0 : round_up(l.gates << l.arity, 16);
    return 4 * floats;
  }

  void place_sums(float* sums) {
    if (fused()) return;
    sums += quads * (groups - 1);
    for (Layer& l : layers) {
      l.first_sums = in_place(l) ? l.grad_theta : sums;
      sums += in_place(l) ? 0 : round_up(l.gates << l.arity, 16);
    }
  }

  int slots(int64_t items) const { return static_cast<int>(std::min<int64_t>(get_threads(), items)); }

  void place(char* save) {
    pass.saved = save + quads_bytes();
    if (fused()) return;
    for (Layer& layer : layers) layer.quads = reinterpret_cast<float*>(save) + layer.offset;
  }

  // work(layer, first gate, gates) for every run of CHUNK gates of every layer.
  template <class F>
  void for_chunks(F work) const {
    std::vector<std::pair<int, int64_t>> items;
    for (int l = 0; l < pass.count; l++)
      for (int64_t j = 0; j < layers[l].gates; j += CHUNK) items.emplace_back(l, j);
    parallel(static_cast<int64_t>(items.size()), [&](int64_t i, int) {
      const Layer& layer = layers[items[i].first];
      work(layer, items[i].second, std::min(CHUNK, layer.gates - items[i].second));
    });
  }

  void make_quads(const Kernels& k) const {
    if (fused()) return;
    for_chunks([&](const Layer& layer, int64_t first, int64_t gates) {
      k.quads(layer, first, gates, const_cast<float*>(layer.quads) + (first << layer.arity));
    });
  }
};

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

int32_t forward(Plan& plan, GlMatrix x, GlMatrix out, void* save) {
  Pass& pass = plan.pass;
  pass.x = x;
  pass.out = out;
  const Kernels& k = kernels();
  const Scratch scratch(plan.slots(pass.tiles()), forward_scratch(pass));
  if (!scratch.ok) return GL_NO_MEMORY;
  plan.place(static_cast<char*>(save));
  plan.make_quads(k);
  parallel(pass.tiles(), [&](int64_t t, int slot) { k.forward_tile(pass, t, scratch.blocks[slot].floats()); });
  return GL_OK;
}

int32_t backward(Plan& plan, GlMatrix x, GlMatrix grad_out, GlMatrix grad_x, const void* save) {
  Pass& pass = plan.pass;
  pass.x = x;
  pass.grad_out = grad_out;
  pass.grad_x = grad_x;
  const Kernels& k = kernels();
  const Block own(static_cast<size_t>(save ? 0 : plan.quads_bytes()));
  const Block sums(static_cast<size_t>(plan.sums_bytes()));
  const Scratch scratch(plan.slots(plan.groups), backward_scratch(pass));
  if (!own.data || !sums.data || !scratch.ok) return GL_NO_MEMORY;
  plan.place(static_cast<char*>(save ? const_cast<void*>(save) : own.data));
  if (!save) plan.make_quads(k);
  for (const Block& b : scratch.blocks) std::memset(b.data, 0, sizeof(float) * 2 * pass.widest * pass.width);
  plan.place_sums(sums.floats());
  const int more = plan.groups - 1;
  parallel(plan.groups, [&](int64_t g, int slot) {
    const int64_t first = pass.tiles() * g / plan.groups, end = pass.tiles() * (g + 1) / plan.groups;
    for (int64_t t = first; t < end; t++)
      k.backward_tile(pass, t, g ? sums.floats() + plan.quads * (g - 1) : nullptr, t > first,
                      scratch.blocks[slot].floats());
  });
  if (!plan.fused())
    plan.for_chunks([&](const Layer& layer, int64_t first, int64_t gates) {
      const int64_t at = first << layer.arity;
      k.grads(layer, first, gates, layer.first_sums + at, sums.floats() + layer.offset + at, plan.quads, more);
    });
  return GL_OK;
}

}  // namespace
}  // namespace gatelight

using namespace gatelight;

int32_t gl_abi_version(void) { return GL_ABI_VERSION; }
const char* gl_simd_available(void) { return available(); }
const char* gl_simd(void) { return kernels().name; }
int32_t gl_simd_select(const char* name) { return name && gatelight::select(name) ? GL_OK : GL_BAD_ARGUMENT; }
void gl_set_threads(int32_t threads) { set_threads(threads); }
int32_t gl_get_threads(void) { return get_threads(); }
void gl_stop_threads(void) { stop_threads(); }
void* gl_acquire(int64_t bytes) { return bytes < 0 ? nullptr : acquire(static_cast<size_t>(bytes)); }
void gl_release(void* block) { release(block); }

int64_t gl_check_fanin(const int32_t* fanin, int64_t count, int64_t in) {
  for (int64_t i = 0; i < count; i++)
    if (fanin[i] < 0 || fanin[i] >= in) return i;
  return -1;
}

int32_t gl_table_fwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, float* table) try {
  if (!valid(kind, arity, gates)) return GL_BAD_ARGUMENT;
  const int64_t p = gatelight::parameters(kind, arity);
  parallel((gates + CHUNK - 1) / CHUNK, [&](int64_t i, int) {
    const int64_t j = i * CHUNK;
    kernels().tables(kind, arity, theta + j * p, std::min(CHUNK, gates - j), table + (j << arity));
  });
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_table_bwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, const float* grad_table,
                     float* grad_theta) try {
  if (!valid(kind, arity, gates)) return GL_BAD_ARGUMENT;
  const int64_t p = gatelight::parameters(kind, arity);
  parallel((gates + CHUNK - 1) / CHUNK, [&](int64_t i, int) {
    const int64_t j = i * CHUNK;
    kernels().tables_bwd(kind, arity, theta + j * p, grad_table + (j << arity), std::min(CHUNK, gates - j),
                         grad_theta + j * p);
  });
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int64_t gl_save_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode) try {
  const Plan plan(layers, count, batch, mode);
  return plan.ok ? plan.save_bytes() : -1;
} catch (const std::bad_alloc&) {
  return -1;
}

int64_t gl_work_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode) try {
  const Plan plan(layers, count, batch, mode);
  if (!plan.ok) return -1;
  return plan.sums_bytes() + 4 * plan.slots(plan.groups) * backward_scratch(plan.pass);
} catch (const std::bad_alloc&) {
  return -1;
}

int32_t gl_stack_fwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x, GlMatrix out,
                     void* save) try {
  Plan plan(layers, count, batch, mode);
  if (!plan.ok || out.sample_major || (!save && plan.save_bytes() > 0)) return GL_BAD_ARGUMENT;
  return batch == 0 ? static_cast<int32_t>(GL_OK) : forward(plan, x, out, save);
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_stack_bwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x, GlMatrix grad_out,
                     GlMatrix grad_x, const void* save) try {
  Plan plan(layers, count, batch, mode);
  if (!plan.ok || grad_x.sample_major || (!save && mode != GL_RECOMPUTE && plan.save_bytes() > 0)) return GL_BAD_ARGUMENT;
  if (batch > 0) return backward(plan, x, grad_out, grad_x, save);
  for (const Layer& layer : plan.layers)
    if (layer.grad_theta)
      std::memset(layer.grad_theta, 0, sizeof(float) * layer.gates * gatelight::parameters(layer.kind, layer.arity));
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}
