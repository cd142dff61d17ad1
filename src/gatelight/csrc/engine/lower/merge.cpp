#include "engine/lower/merge.h"

namespace gatelight {
namespace {

constexpr int MOST_ROUNDS = 8;

// `reader` with gate number `id` written into it; false if that has more than three inputs or needs fewer than it has.
bool substitute(const Node& reader, int32_t id, const Node& gate, Node& result) {
  int count = 0, at = 0;
  for (int k = 0; k < reader.arity; k++) {
    if (reader.in[k] == id) at = k;
    else result.in[count++] = reader.in[k];
  }
  for (int k = 0; k < gate.arity; k++) {
    int known = 0;
    while (known < count && result.in[known] != gate.in[k]) known++;
    if (known < count) continue;
    if (count == 3) return false;
    result.in[count++] = gate.in[k];
  }
  const auto value = [&](int32_t node, int e) {
    for (int k = 0; k < count; k++)
      if (result.in[k] == node) return e >> (count - 1 - k) & 1;
    return 0;
  };
  int table = 0;
  for (int e = 0; e < 1 << count; e++) {
    int inner = 0, outer = 0;
    for (int k = 0; k < gate.arity; k++) inner = 2 * inner + value(gate.in[k], e);
    for (int k = 0; k < reader.arity; k++)
      outer = 2 * outer + (k == at ? gate.table >> inner & 1 : value(reader.in[k], e));
    table |= (reader.table >> outer & 1) << e;
  }
  for (int k = 0; k < count; k++) {
    const int bit = 1 << (count - 1 - k);
    bool matters = false;
    for (int e = 0; e < 1 << count; e++) matters = matters || (table >> e & 1) != (table >> (e ^ bit) & 1);
    if (!matters) return false;
  }
  for (int k = count; k < 3; k++) result.in[k] = 0;
  result.arity = static_cast<uint8_t>(count);
  result.table = static_cast<uint8_t>(table);
  return true;
}

// One look at every gate, inputs first; how many were merged into their readers.
int64_t merge_round(GateList& net) {
  constexpr int32_t NONE = -1, MANY = -2;
  std::vector<int32_t> reader(net.size(), NONE);
  for (int32_t id = net.first(); id < net.size(); id++) {
    const Node& node = net.nodes[id - net.first()];
    for (int k = 0; k < node.arity; k++) reader[node.in[k]] = reader[node.in[k]] == NONE ? id : MANY;
  }
  for (Literal output : net.outputs) reader[output >> 1] = MANY;
  int64_t merged = 0;
  for (int32_t id = net.first(); id < net.size(); id++) {
    Node result;
    if (reader[id] < 0) continue;
    Node& target = net.nodes[reader[id] - net.first()];
    if (!substitute(target, id, net.nodes[id - net.first()], result)) continue;
    target = result;
    merged++;
  }
  drop_unread(net);
  return merged;
}

}  // namespace

void merge(GateList& net) {
  for (int round = 0; round < MOST_ROUNDS; round++)
    if (merge_round(net) * 1000 <= static_cast<int64_t>(net.nodes.size())) break;
}

}  // namespace gatelight
