// Gates: one small loop for each function, found through a table.
#pragma once

#include "engine/interpret/rows.h"
#include "engine/program.h"

namespace gatelight {
namespace engine::GL_PATH {

// Whether no other order of the inputs gives a smaller table: the scheduler leaves no others.
constexpr bool is_ordered(int arity, int table) {
  const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int o = 1; o < (arity == 3 ? 6 : arity); o++) {
    int other = 0;
    for (int e = 0; e < 1 << arity; e++) {
      int source = 0;
      for (int i = 0; i < arity; i++) source |= (e >> (arity - 1 - i) & 1) << (arity - 1 - orders[o][i]);
      other |= (table >> source & 1) << e;
    }
    if (other < table) return false;
  }
  return true;
}

// Runs `count` gates and returns where the next run's indices start.
template <class R, class I>
using GateLoop = const I* (*)(uint64_t* rows, const I* p, int64_t count);

template <int ARITY, int TABLE, class R, class I>
const I* gate_loop(uint64_t* rows, const I* p, int64_t count) {
#pragma GCC unroll 2
  for (int64_t g = 0; g < count; g++, p += ARITY + 1) {
    R in[ARITY];
#pragma GCC unroll 3
    for (int k = 0; k < ARITY; k++) in[k] = R::load(rows, p[k]);
    lut<ARITY, TABLE>(in).store(rows, p[ARITY]);
  }
  return p;
}

template <int TABLE, class R, class I>
constexpr GateLoop<R, I> gate_loop_of(int arity) {
  if constexpr (TABLE % 2 == 0) {  // gates that write a row are 0 for zeros
    if constexpr (TABLE < 16 && is_ordered(2, TABLE & 15))
      if (arity == 2) return gate_loop<2, TABLE, R, I>;
    if constexpr (MAX_ROW_ARITY == 3 && is_ordered(3, TABLE))
      if (arity == 3) return gate_loop<3, TABLE, R, I>;
  }
  return nullptr;
}

template <int... I>
struct Tables {};
template <int N, int... I>
struct MakeTables : MakeTables<N - 1, N - 1, I...> {};
template <int... I>
struct MakeTables<0, I...> {
  typedef Tables<I...> type;
};

template <class R, class I>
struct GateLoops {
  GateLoop<R, I> of[2][256];
};

template <class R, class I, int... T>
constexpr GateLoops<R, I> make_gate_loops(Tables<T...>) {
  return {{{gate_loop_of<T, R, I>(2)...}, {gate_loop_of<T, R, I>(3)...}}};
}

template <class R, class I>
GL_INLINE void run_gates(const Program& program, uint64_t* rows) {
  static constexpr GateLoops<R, I> loops = make_gate_loops<R, I>(typename MakeTables<256>::type());
  const I* p = static_cast<const I*>(program.gates);
  for (int64_t r = 0; r < program.run_count; r++) {
    const Run& run = program.runs[r];
    p = loops.of[run.arity - 2][run.table](rows, p, run.count);
  }
}

}  // namespace engine::GL_PATH
}  // namespace gatelight
