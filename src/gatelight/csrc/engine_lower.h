// From a circuit to small gates: what the engine can run with one instruction each.
#pragma once

#include <cstdint>
#include <vector>

#include "engine_circuit.h"

namespace gatelight {

// A net or its negation: 2 * node + negated. Node 0 is the constant 0, nodes 1 .. inputs are the inputs.
typedef uint32_t Literal;

// A gate of two or three inputs that is 0 when they all are.
struct Node {
  int32_t in[3];
  uint8_t arity;
  uint8_t table;
};

struct Netlist {
  int32_t inputs = 0;
  std::vector<Node> nodes;       // node i of the literals is nodes[i - inputs - 1]; each reads smaller ones only
  std::vector<Literal> outputs;  // as in the circuit

  int32_t first() const { return inputs + 1; }
  int32_t size() const { return first() + static_cast<int32_t>(nodes.size()); }
};

// A function of literals; input i has weight 2^(arity - 1 - i) in the index of an entry of the table.
struct Function {
  int arity = 0;
  uint64_t table = 0;
  Literal in[6];
};

// Adds functions to a netlist as gates of at most max_arity (2 or 3) inputs.
class Builder {
 public:
  Builder(Netlist& net, int max_arity) : net_(net), max_arity_(max_arity) {}
  // The function's value; no gate is added for a constant or an input, plain or negated.
  Literal make(Function f);

 private:
  Literal add(const Function& f);
  Literal half(const Function& f, int i, int value);

  Netlist& net_;
  int max_arity_;
};

// Constants, pass-throughs and inverters vanish, gates of more than max_arity (2 or 3) inputs are taken apart, with
// three inputs small gates are merged into their readers, and gates that no output needs are dropped.
Netlist lower(const GlCircuit& circuit, int max_arity);

}  // namespace gatelight
