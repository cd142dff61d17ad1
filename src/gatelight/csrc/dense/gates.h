// The inner loops: a run of gates on the rows of one tile, forward and backward.
#pragma once

#include "dense/gate.h"

namespace gatelight {
namespace GL_PATH {

// Gates ahead whose rows are fetched into L1: enough to hide the latency of L3 if a layer outgrows L2.
constexpr int AHEAD = 16;
// Rows of a layer that outgrows L3 too, and those of the caller's matrices, which are in no cache yet, are fetched into
// L2 before. Many more lines may be on their way there than to L1: they come in half the time.
constexpr int FAR_AHEAD = 64;
constexpr int64_t WIDE_LAYER = 1 << 15;  // rows
// Gates of five and six inputs take so long to compute that nothing is gained.
template <int N, int W>
constexpr bool FETCHES_FAR = W > 1 && N <= 4;

// Where a run of gates reads: indices of `known` gates (the run's and those that follow) into the rows of x. `linked`:
// nearly every gate's first input is the last one of the gate before it.
struct Wires {
  const int32_t* fanin;
  int64_t known;
  bool wide;
  bool linked;

  // How many of the first `gates` gates have one to fetch for.
  int64_t fetching(int64_t gates) const {
    const int64_t most = known - (wide ? FAR_AHEAD : AHEAD);
    return gates < most ? gates : most;
  }

  // Where gate j reads, in floats from the first row. Two indices come with one load: loads are the bottleneck.
  template <int N, int W>
  GL_INLINE void inputs(int64_t j, int64_t* at) const {
    int i = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; i + 1 < N; i += 2) {
      uint64_t two;
      __builtin_memcpy(&two, fanin + j * N + i, 8);
      at[i] = (int64_t)(two & 0xffffffff) * W;
      at[i + 1] = (int64_t)(two >> 32) * W;
    }
#endif
    for (; i < N; i++) at[i] = (int64_t)fanin[j * N + i] * W;
  }

  // Fetches those of `rows` that gates after j read, from input FIRST; `far` ones too.
  template <int N, int W, int FIRST>
  GL_INLINE void fetch(int64_t j, const float* rows, bool far) const {
    if (W == 1) return;
    int64_t at[N];
    inputs<N, W>(j + AHEAD, at);
    for (int i = FIRST; i < N; i++)
      for (int part = 0; part < W; part += 16) __builtin_prefetch(rows + at[i] + part);
    if (!FETCHES_FAR<N, W> || !far) return;
    inputs<N, W>(j + FAR_AHEAD, at);
    for (int i = FIRST; i < N; i++)
      for (int part = 0; part < W; part += 16) __builtin_prefetch(rows + at[i] + part, 0, 2);
  }
};

// Where a run of gates writes: rows `stride` floats apart for the next layer, and, unless null, the same W floats apart
// past the caches for backward. Both may be one.
struct Outputs {
  float* rows;
  int64_t stride;
  float* kept;

  Outputs from(int64_t j, int width) const { return {rows + j * stride, stride, kept ? kept + j * width : nullptr}; }
};

// Rows of x are W floats apart. LINKED: a row stays in its register from the gate that reads it last to the one that
// reads it first.
template <int N, int W, bool KEEP, bool LINKED = false>
inline void run_fwd(const float* x, const Wires& wires, const float* c, int64_t gates, const Outputs& to) {
  float *const out = to.rows, *const kept = to.kept;
  const int64_t out_stride = to.stride;
  const Wires own = wires;  // a copy of its own: as far as the compiler can tell, a stored row might lie on top of it
  int64_t held_at = -1;
  Row<W> held = Row<W>::all(0.0f);
  auto step = [&](int64_t j) __attribute__((always_inline)) {
    Row<W> in[N];
    int64_t at[N];
    own.inputs<N, W>(j, at);
    if (!LINKED || __builtin_expect(at[0] != held_at, 0)) held = Row<W>::hold(x + at[0]);
    in[0] = held;
    for (int i = 1; i < N; i++) in[i] = Row<W>::hold(x + at[i]);
    const float* coefficients = c + (j << N);
    Row<W> value;
    if constexpr (N == 2 && !LINKED) value = single_quad_value(coefficients, in[0], in[1]);
    else value = gate_value<N, W>(coefficients, in, nullptr);
    if (LINKED) held_at = at[N - 1], held = in[N - 1];
    if (!KEEP || kept != out) value.store(out + j * out_stride);
    if (KEEP) value.stream(kept + j * W);
  };
  int64_t j = 0;
  const int64_t end = own.fetching(gates);
  auto steps = [&](bool wide, bool far) __attribute__((always_inline)) {
    for (; j < end; j++) {
      own.fetch<N, W, LINKED>(j, x, wide);
      if (far) {
        fetch_far<W>(out + (j + FAR_AHEAD) * out_stride);
        for (int part = 0; part < W; part += 16) __builtin_prefetch(out + (j + AHEAD) * out_stride + part, 1);
      }
      step(j);
    }
  };
  const bool far = FETCHES_FAR<N, W> && out_stride != W;  // the caller's matrix
  if (LINKED && !own.wide && !far) steps(false, false);  // leaves nothing to test in the loop
  else steps(own.wide, far);
  for (; j < gates; j++) step(j);
}

// Rows of out-gradients o, o_stride floats apart. Those that a layer above has added up are zeroed as they are read
// (`clear`): the layer below adds to them next.
struct Gradient {
  float* o;
  int64_t stride;
  bool clear;
};

// The sums of a gate's coefficient gradients: row by row of 16 samples, or of one.
template <int W>
using Sum = Row<W == 32 ? 16 : W>;
// Sums are reduced sixteen rows at a time: eight gates of arity 1, four of arity 2, ..., one of arity 4 and up.
template <int N, int W>
constexpr int TOGETHER = W == 1 || N >= 4 ? 1 : 16 >> N;

// The gradients of a gate on 32 samples, whose sums are left as rows of 16.
template <int N, bool NEED_X>
GL_INLINE void gate_bwd_halved(const float* c, const Row<32>* x, const Row<32>& o, Row<16>* s, Row<32>* g) {
  Row<32> by_sample[1 << N];
  gate_bwd<N, 32, NEED_X>(c, x, o, by_sample, g);
  for (int k = 0; k < 1 << N; k++) s[k] = halves(by_sample[k]);
}

// Adds the sums of TOGETHER gates from j on up over their samples.
template <int N, int W>
GL_INLINE void add_gates(int64_t j, const Sum<W>* s, float* sums, bool accumulate) {
  constexpr int ENTRIES = 1 << N;
  if constexpr (W == 1)
    for (int k = 0; k < ENTRIES; k++) sums[(j << N) + k] = accumulate ? sums[(j << N) + k] + s[k].v[0] : s[k].v[0];
  else
    for (int k = 0; k < TOGETHER<N, W> * ENTRIES; k += 16) add_sums(s + k, sums + (j << N) + k, accumulate);
}

// x: rows of the inputs; gradients gx of the same rows are added to. sums: [gates, 2^N], padded to a multiple of 16.
// LINKED: the gradient of a row stays in its register, too. Gradients are added one input after the other: a gate may
// read the same row twice. Wires and gradient are copied: as far as the compiler can tell, a row that is stored might
// lie on top of the originals.
template <int N, int W, bool NEED_X, bool LINKED = false>
inline void run_bwd(const float* x, float* gx, const Wires& given, const float* c, int64_t gates,
                    const Gradient& from, float* sums, bool accumulate) {
  static_assert(!LINKED || N == 2, "a row in the middle would need its gradient added");
  constexpr int ENTRIES = 1 << N, STEP = TOGETHER<N, W>;
  const Wires wires = given;
  float* o = from.o;
  const int64_t stride = from.stride, o_ahead = AHEAD * stride, o_far_ahead = FAR_AHEAD * stride;
  const bool clear = from.clear, far = FETCHES_FAR<N, W> && stride != W;  // far: the caller's matrix
  int64_t j = 0, held_at = -1;
  Row<W> held = Row<W>::all(0.0f), held_gradient = held;
  auto step = [&](int64_t j, Sum<W>* s) __attribute__((always_inline)) {
    Row<W> in[N], g[N];
    int64_t at[N];
    wires.inputs<N, W>(j, at);
    if (!LINKED || __builtin_expect(at[0] != held_at, 0)) {
      if (LINKED && NEED_X && held_at >= 0) held_gradient.store(gx + held_at);
      held = Row<W>::hold(x + at[0]);
      if (LINKED && NEED_X) held_gradient = Row<W>::load(gx + at[0]);
    }
    in[0] = held;
    for (int i = 1; i < N; i++) in[i] = Row<W>::hold(x + at[i]);
    const Row<W> gradient = Row<W>::hold(o);
    if constexpr (W == 32) gate_bwd_halved<N, NEED_X>(c + (j << N), in, gradient, s, g);
    else gate_bwd<N, W, NEED_X>(c + (j << N), in, gradient, s, g);
    if (LINKED && NEED_X) {
      (held_gradient + g[0]).store(gx + at[0]);
      held_gradient = Row<W>::load(gx + at[N - 1]) + g[N - 1];
    } else if (NEED_X) {
      for (int i = 0; i < N; i++) (Row<W>::load(gx + at[i]) + g[i]).store(gx + at[i]);
    }
    if (LINKED) held_at = at[N - 1], held = in[N - 1];
    if (clear) Row<W>::all(0.0f).store(o);
    o += stride;
  };
  Sum<W> s[STEP * ENTRIES];
  const int64_t end = wires.fetching(gates);
  auto steps = [&](bool wide, bool near, bool far) __attribute__((always_inline)) {
    for (; j + STEP <= end; j += STEP) {
#pragma GCC unroll 8
      for (int u = 0; u < STEP; u++) {
        wires.fetch<N, W, LINKED>(j + u, x, wide);
        if (NEED_X) wires.fetch<N, W, LINKED>(j + u, gx, wide);
        if (near) for (int part = 0; part < W; part += 16) __builtin_prefetch(o + o_ahead + part);
        if (far) fetch_far<W>(o + o_far_ahead);
        step(j + u, s + u * ENTRIES);
      }
      add_gates<N, W>(j, s, sums, accumulate);
    }
  };
  const bool near = W > 1 && (stride != W || wires.wide);  // other rows the processor fetches by itself
  if (LINKED && !near && !far) steps(false, false, false);  // leaves nothing to test in the loop
  else steps(wires.wide, near, far);
  for (; j < gates; j += STEP) {
    for (int u = 0; u < STEP; u++) {
      if (j + u < gates) step(j + u, s + u * ENTRIES);
      else for (int k = 0; k < ENTRIES; k++) s[u * ENTRIES + k] = Sum<W>::all(0.0f);
    }
    add_gates<N, W>(j, s, sums, accumulate);
  }
  if (LINKED && NEED_X && held_at >= 0) held_gradient.store(gx + held_at);
}

template <int W, bool KEEP>
inline void gates_fwd(int arity, const float* x, const Wires& wires, const float* c, int64_t gates, const Outputs& to) {
  if (W > 1 && arity == 2 && wires.linked) return run_fwd<2, W, KEEP, W != 1>(x, wires, c, gates, to);
  switch (arity) {
    case 1: return run_fwd<1, W, KEEP>(x, wires, c, gates, to);
    case 2: return run_fwd<2, W, KEEP>(x, wires, c, gates, to);
    case 3: return run_fwd<3, W, KEEP>(x, wires, c, gates, to);
    case 4: return run_fwd<4, W, KEEP>(x, wires, c, gates, to);
    case 5: return run_fwd<5, W, KEEP>(x, wires, c, gates, to);
    default: return run_fwd<6, W, KEEP>(x, wires, c, gates, to);
  }
}
template <int W>
inline void gates_fwd(int arity, const float* x, const Wires& wires, const float* c, int64_t gates, const Outputs& to) {
  if (W > 1 && to.kept) gates_fwd<W, W != 1>(arity, x, wires, c, gates, to);
  else gates_fwd<W, false>(arity, x, wires, c, gates, to);
}

template <int W, bool NEED_X>
inline void gates_bwd(int arity, const float* x, float* gx, const Wires& wires, const float* c, int64_t gates,
                      const Gradient& from, float* sums, bool accumulate) {
  if (W > 1 && arity == 2 && wires.linked)
    return run_bwd<2, W, NEED_X, W != 1>(x, gx, wires, c, gates, from, sums, accumulate);
  switch (arity) {
    case 1: return run_bwd<1, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
    case 2: return run_bwd<2, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
    case 3: return run_bwd<3, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
    case 4: return run_bwd<4, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
    case 5: return run_bwd<5, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
    default: return run_bwd<6, W, NEED_X>(x, gx, wires, c, gates, from, sums, accumulate);
  }
}

}  // namespace GL_PATH
}  // namespace gatelight
