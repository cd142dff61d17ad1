// Machine code for the gates of a circuit: what the AVX-512 path runs where the system allows it.
//
// One instruction for a gate, most of whose inputs are in registers: no index is read, and only what is read again much
// later is written to a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/lower/gate_list.h"
#include "engine/program.h"

namespace gatelight {

class Code {
 public:
  Code() = default;
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // Makes code for the gates in their order, for rows of 512 bits and of 64; false if it cannot be made here. It
  // reads input i in row input_row[i] and writes output i to row first_output + i.
  bool make(const GateList& net);

  size_t bytes() const { return bytes_; }

  CodeFunction block_512 = nullptr, block_64 = nullptr;
  size_t bytes_512 = 0;
  int32_t rows = 0, first_output = 0;
  std::vector<int32_t> input_row;
  int64_t gates = 0, reads = 0, writes = 0;  // reads and writes of rows

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gatelight
