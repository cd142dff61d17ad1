// Scratch for the threads of a job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/memory.h"
#include "runtime/pool.h"

namespace gatelight {

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// How many threads a job of so many items uses.
inline int slots(int64_t items) { return static_cast<int>(std::min<int64_t>(get_threads(), items)); }

// Scratch for each thread of a job; not ok if memory runs out.
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
