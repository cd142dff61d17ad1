// From a circuit to small gates: what the engine can run with one instruction each.
#pragma once

#include <cstdint>

#include "engine/lower/gate_list.h"
#include "gatelight_engine.h"

namespace gatelight {

// A function of literals; input i has weight 2^(arity - 1 - i) in the index of an entry of the table.
struct Function {
  int arity = 0;
  uint64_t table = 0;
  Literal in[6];
};

// Adds functions to a list as gates of at most max_arity (2 or 3) inputs.
class Builder {
 public:
  Builder(GateList& net, int max_arity) : net_(net), max_arity_(max_arity) {}
  // The function's value; no gate is added for a constant or an input, plain or negated.
  Literal make(Function f);

 private:
  Literal add(const Function& f);
  Literal half(const Function& f, int i, int value);

  GateList& net_;
  int max_arity_;
};

// Constants, pass-throughs and inverters are removed, gates of more than max_arity (2 or 3) inputs are split, with
// three inputs small gates are merged into their readers, and gates that no output needs are dropped.
GateList lower(const GlCircuit& circuit, int max_arity);

}  // namespace gatelight
