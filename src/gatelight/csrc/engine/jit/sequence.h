// The order of gates for straight-line code, with the sums and the comparison of the classes as gates of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/lower/gate_list.h"
#include "engine/program.h"
#include "gatelight_engine.h"

namespace gatelight {

struct Sequence {
  // The gates in their order. The outputs are the bits of the score of each class above `Sum::bias`, lowest first,
  // planes_for(Sum::bits) of them, then those of the label.
  GateList net;
  std::vector<Sum> classes;
};

// False if there would be more than `most_gates`, or if the scores of two classes may lie too far apart to be compared
// bit by bit.
bool sequence(const GlCircuit& circuit, const GateList& net, int64_t most_gates, Sequence& out);

}  // namespace gatelight
