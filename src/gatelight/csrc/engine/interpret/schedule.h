// From small gates to a program: order, slots, sums, encoder.
#pragma once

#include <vector>

#include "engine/lower/gate_list.h"
#include "engine/program.h"
#include "gatelight_engine.h"

namespace gatelight {

// A program and the memory it points to.
struct Prepared {
  Program program{};
  std::vector<Encode> encode;
  std::vector<Run> runs, sum_runs;
  std::vector<uint32_t> gates, sums;
  std::vector<uint16_t> short_gates, short_sums;
  std::vector<Sum> classes;
  std::vector<int32_t> input_slot, output_slot;
  std::vector<uint8_t> output_negated;
  int64_t stored = 0, fused = 0, gate_reads = 0, sum_reads = 0, summed = 0;
};

// A program that sums its outputs by class or, with `keep_outputs`, leaves every output in a slot.
void schedule(const GlCircuit& circuit, const GateList& net, bool keep_outputs, Prepared& prepared);

}  // namespace gatelight
