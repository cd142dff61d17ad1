// The exported functions for chains of convolutional layers: checks, memory, and how a pass is cut into tiles.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "conv/kernels.h"
#include "gatelight.h"
#include "parametrize/chunks.h"
#include "runtime/scratch.h"

namespace gatelight {
namespace {

int64_t tree_gates(int arity, int depth) {
  int64_t gates = 0, level = 1;
  for (int d = 0; d < depth; d++, level *= arity) gates += level;
  return gates;
}

bool has_kernel(const GlConv& c) {
  const bool shape = c.channels > 0 && c.height > 0 && c.width > 0 && c.kernel > 0 && c.padding >= 0 && c.stride > 0 &&
                     c.out_channels > 0 && c.kernel <= c.height + 2 * c.padding && c.kernel <= c.width + 2 * c.padding;
  return shape && (c.pool == 1 || c.pool == 2) && find_map(c.kind, c.arity) &&
         path().conv.supported(c.arity, c.depth);
}

// A chain of layers, and the sizes that follow from it. Rows are those of a tile: 16 floats.
struct Chain {
  std::vector<Conv> layers;
  std::vector<std::vector<int32_t>> shifts;
  int64_t batch, tiles, coefficients = 0, groups, widest_in = 0, hidden_rows = 0, winners = 0;
  bool ok = false;

  Chain(const GlConv* given, int32_t count, int64_t batch) : batch(batch), tiles((batch + TILE - 1) / TILE) {
    if (!given || count < 1 || batch < 0) return;
    for (int32_t l = 0; l < count; l++) {
      Conv c{};
      static_cast<GlConv&>(c) = given[l];
      if (!has_kernel(c) || c.plane_out() < 1) return;
      if (l > 0 && (c.channels != layers[l - 1].out_channels || c.height != layers[l - 1].out_high() ||
                    c.width != layers[l - 1].out_wide()))
        return;
      const int64_t gates = c.out_channels * tree_gates(c.arity, c.depth);
      c.layer = make_layer({1, gates, c.arity, c.kind, c.fanin, c.theta, c.grad_theta}, coefficients, false);
      coefficients += round_up(gates << c.arity, 16);
      layers.push_back(c);
      widest_in = std::max(widest_in, c.channels * c.plane_in());
      if (l > 0) hidden_rows += c.channels * c.plane_in();
      winners += c.winners();
    }
    // Sums of fixed groups of tiles are added in a fixed order: the same bits for any number of threads.
    groups = std::max<int64_t>(1, std::min<int64_t>(16, tiles / 2));
    for (Conv& c : layers) {
      shifts.push_back(shift_table(c));
      c.shifts = shifts.back().data();
    }
    ok = true;
  }

  // For each place in the window and each position, pooling window after pooling window: where the pixel is.
  static std::vector<int32_t> shift_table(const Conv& c) {
    std::vector<int32_t> table;
    table.reserve(c.kernel * c.kernel * c.positions());
    for (int32_t dy = 0; dy < c.kernel; dy++)
      for (int32_t dx = 0; dx < c.kernel; dx++)
        for (int64_t y = 0; y < c.out_high(); y++)
          for (int64_t x = 0; x < c.out_wide(); x++)
            for (int32_t p = 0; p < c.pool * c.pool; p++) {
              const int64_t row = (y * c.pool + p / c.pool) * c.stride + dy - c.padding;
              const int64_t column = (x * c.pool + p % c.pool) * c.stride + dx - c.padding;
              const bool inside = row >= 0 && row < c.height && column >= 0 && column < c.width;
              table.push_back(static_cast<int32_t>((inside ? row * c.width + column : c.plane_in() - 1) * TILE));
            }
    return table;
  }

  int samples(int64_t tile) const { return static_cast<int>(std::min<int64_t>(TILE, batch - tile * TILE)); }
  int64_t out_rows() const { return layers.back().out_channels * layers.back().plane_out(); }
  // Saved: coefficients, then for each tile the planes of hidden layers and the winners of all, as 32-bit words.
  int64_t tile_words() const { return round_up(hidden_rows * TILE + winners, 16); }
  int64_t save_bytes() const { return 4 * (coefficients + tile_words() * tiles); }

  std::vector<const Layer*> gates() const {
    std::vector<const Layer*> all;
    for (const Conv& c : layers) all.push_back(&c.layer);
    return all;
  }

  void place_coefficients(const float* at) {
    for (Conv& c : layers) c.layer.coefficients = at + c.layer.offset;
  }
};

// The planes of a layer's input: zero the row after each.
void zero_padding(const Conv& c, float* planes) {
  for (int64_t i = 1; i <= c.channels; i++) std::memset(planes + (i * c.plane_in() - 1) * TILE, 0, 4 * TILE);
}

void pack_input(const ConvKernels& k, const Chain& chain, const GlMatrix& x, int64_t tile, float* to) {
  const Conv& c = chain.layers.front();
  const int64_t pixels = c.plane_in() - 1;
  for (int64_t i = 0; i < c.channels; i++)
    k.pack(x, i * pixels, tile * TILE, chain.samples(tile), pixels, false, to + i * c.plane_in() * TILE);
  zero_padding(c, to);
}

// hidden: where the tile's values and winners are saved; null without backward.
void forward_tile(const Chain& chain, const GlMatrix& x, const GlMatrix& out, int64_t tile, float* hidden,
                  float* scratch) {
  const ConvKernels& k = path().conv;
  float* in = scratch;
  float* other = scratch + chain.widest_in * TILE;
  uint32_t* winners = hidden ? reinterpret_cast<uint32_t*>(hidden + chain.hidden_rows * TILE) : nullptr;
  pack_input(k, chain, x, tile, in);
  const int samples = chain.samples(tile);
  for (size_t l = 0; l < chain.layers.size(); l++) {
    const Conv& c = chain.layers[l];
    if (l + 1 < chain.layers.size()) {
      const Conv& next = chain.layers[l + 1];
      float* to = hidden ? hidden : in == scratch ? other : scratch;
      k.forward(c, in, to, next.plane_in(), TILE, winners);
      zero_padding(next, to);
      if (hidden) hidden += next.channels * next.plane_in() * TILE;
      in = to;
    } else if (samples == TILE) {
      k.forward(c, in, out.data + tile * TILE, c.plane_out(), out.stride, winners);
    } else {
      float* rows = scratch + 2 * chain.widest_in * TILE;
      k.forward(c, in, rows, c.plane_out(), TILE, winners);
      k.unpack(rows, chain.out_rows(), out, 0, tile * TILE, samples);
    }
    if (winners) winners += c.winners();
  }
}

void backward_tile(const Chain& chain, const GlMatrix& x, const GlMatrix& grad_out, const GlMatrix& grad_x,
                   int64_t tile, const float* hidden, float* group, bool accumulate, float* scratch) {
  const ConvKernels& k = path().conv;
  const int64_t widest = chain.widest_in * TILE;
  float *input = scratch, *rows = scratch + 3 * widest;
  pack_input(k, chain, x, tile, input);
  k.pack(grad_out, 0, tile * TILE, chain.samples(tile), chain.out_rows(), true, rows);
  const float* o = rows;
  int64_t o_plane = chain.layers.back().plane_out();
  hidden += chain.hidden_rows * TILE;
  const uint32_t* winners = reinterpret_cast<const uint32_t*>(hidden) + chain.winners;
  for (size_t l = chain.layers.size(); l-- > 0;) {
    const Conv& c = chain.layers[l];
    const int64_t size = c.channels * c.plane_in() * TILE;
    const float* values = l ? hidden -= size : input;
    float* grads = l || grad_x.data ? scratch + (o == scratch + widest ? 2 : 1) * widest : nullptr;
    if (grads) std::memset(grads, 0, 4 * size);
    winners -= c.winners();
    k.backward(c, values, o, o_plane, winners, grads, group, accumulate);
    o = grads;
    o_plane = c.plane_in();
  }
  if (!grad_x.data) return;
  const Conv& c = chain.layers.front();
  const int64_t pixels = c.plane_in() - 1;
  for (int64_t i = 0; i < c.channels; i++)
    k.unpack(o + i * c.plane_in() * TILE, pixels, grad_x, i * pixels, tile * TILE, chain.samples(tile));
}

int32_t forward(Chain& chain, const GlMatrix& x, const GlMatrix& out, float* save) {
  const Block own(static_cast<size_t>(save ? 0 : 4 * chain.coefficients));
  const Scratch scratch(slots(chain.tiles), (2 * chain.widest_in + chain.out_rows()) * TILE);
  if (!own.data || !scratch.ok) return GL_NO_MEMORY;
  chain.place_coefficients(save ? save : own.floats());
  make_coefficients(chain.gates());
  parallel(chain.tiles, [&](int64_t t, int slot) {
    float* hidden = save ? save + chain.coefficients + t * chain.tile_words() : nullptr;
    forward_tile(chain, x, out, t, hidden, scratch.blocks[slot].floats());
  });
  return GL_OK;
}

int32_t backward(Chain& chain, const GlMatrix& x, const GlMatrix& grad_out, const GlMatrix& grad_x, const float* save) {
  const Block sums(static_cast<size_t>(4 * chain.coefficients * chain.groups));
  const Scratch scratch(slots(chain.groups), (3 * chain.widest_in + chain.out_rows()) * TILE);
  if (!sums.data || !scratch.ok) return GL_NO_MEMORY;
  chain.place_coefficients(save);
  parallel(chain.groups, [&](int64_t g, int slot) {
    const int64_t first = chain.tiles * g / chain.groups, end = chain.tiles * (g + 1) / chain.groups;
    for (int64_t t = first; t < end; t++)
      backward_tile(chain, x, grad_out, grad_x, t, save + chain.coefficients + t * chain.tile_words(),
                    sums.floats() + g * chain.coefficients, t > first, scratch.blocks[slot].floats());
  });
  for_chunks(chain.gates(), [&](const Layer& layer, int64_t first, int64_t gates) {
    const float* at = sums.floats() + layer.offset + (first << layer.arity);
    path().parameters.grads(layer, first, gates, at, at + chain.coefficients, chain.coefficients,
                            static_cast<int>(chain.groups) - 1);
  });
  return GL_OK;
}

}  // namespace
}  // namespace gatelight

using namespace gatelight;

int32_t gl_conv_supported(int32_t arity, int32_t depth, int32_t pool) {
  return (pool == 1 || pool == 2) && path().conv.supported(arity, depth);
}

int64_t gl_conv_save_bytes(const GlConv* layers, int32_t count, int64_t batch) try {
  const Chain chain(layers, count, batch);
  return chain.ok ? chain.save_bytes() : -1;
} catch (const std::bad_alloc&) {
  return -1;
}

int32_t gl_conv_fwd(const GlConv* layers, int32_t count, int64_t batch, GlMatrix x, GlMatrix out, void* save) try {
  Chain chain(layers, count, batch);
  if (!chain.ok || out.sample_major) return GL_BAD_ARGUMENT;
  return batch == 0 ? static_cast<int32_t>(GL_OK) : forward(chain, x, out, static_cast<float*>(save));
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_conv_bwd(const GlConv* layers, int32_t count, int64_t batch, GlMatrix x, GlMatrix grad_out, GlMatrix grad_x,
                    const void* save) try {
  Chain chain(layers, count, batch);
  if (!chain.ok || grad_x.sample_major || !save) return GL_BAD_ARGUMENT;
  if (batch > 0) return backward(chain, x, grad_out, grad_x, static_cast<const float*>(save));
  for (const Conv& c : chain.layers) zero_grads(c.layer);
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}
