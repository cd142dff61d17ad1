#include "engine/lower/gate_list.h"

namespace gatelight {

void drop_unread(GateList& net) {
  std::vector<uint8_t> read(net.size(), 0);
  for (Literal output : net.outputs) read[output >> 1] = 1;
  for (int32_t i = net.size() - 1; i >= net.first(); i--) {
    const Node& node = net.nodes[i - net.first()];
    for (int k = 0; read[i] && k < node.arity; k++) read[node.in[k]] = 1;
  }
  std::vector<int32_t> moved(net.size());
  int32_t next = net.first();
  for (int32_t i = 0; i < net.size(); i++) moved[i] = i < net.first() ? i : read[i] ? next++ : 0;
  for (int32_t i = net.first(), end = net.size(); i < end; i++) {
    if (!read[i]) continue;
    Node node = net.nodes[i - net.first()];
    for (int k = 0; k < node.arity; k++) node.in[k] = moved[node.in[k]];
    net.nodes[moved[i] - net.first()] = node;
  }
  net.nodes.resize(next - net.first());
  for (Literal& output : net.outputs) output = 2 * static_cast<Literal>(moved[output >> 1]) + (output & 1);
}

}  // namespace gatelight
