// Small gates in a list, inputs first: what every stage of the engine works on.
#pragma once

#include <cstdint>
#include <vector>

namespace gatelight {

// A net or its negation: 2 * node + negated. Node 0 is the constant 0, nodes 1 .. inputs are the inputs.
typedef uint32_t Literal;

// A gate of two or three inputs that is 0 when they all are.
struct Node {
  int32_t in[3];
  uint8_t arity;
  uint8_t table;
};

struct GateList {
  int32_t inputs = 0;
  std::vector<Node> nodes;       // node i of the literals is nodes[i - inputs - 1]; each reads smaller ones only
  std::vector<Literal> outputs;  // as in the circuit

  int32_t first() const { return inputs + 1; }
  int32_t size() const { return first() + static_cast<int32_t>(nodes.size()); }
};

// Removes gates that no output needs.
void drop_unread(GateList& net);

}  // namespace gatelight
