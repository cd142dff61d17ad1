#include "engine/interpret/schedule.h"

#include <algorithm>
#include <limits>

#include "engine/encoder.h"

namespace gatelight {
namespace {

// Up to this many sums compute a gate that nothing else reads; for more its row is written and read again.
constexpr int MOST_FUSED_READERS = 2;
constexpr int32_t FOREVER = std::numeric_limits<int32_t>::max();
constexpr uint8_t SAME = 0b10, NOT = 0b01;

// A function with its inputs in the order that makes its table smallest, so that equal functions meet.
struct Ordered {
  int32_t id;  // the node that it computes
  uint8_t arity, table;
  int32_t in[3];
  int key() const { return arity << 8 | table; }
};

Ordered ordered(int32_t id, const Node& node, bool negated) {
  static const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const int n = node.arity, size = 1 << n, flip = negated ? (1 << size) - 1 : 0;
  Ordered best{id, node.arity, 0, {0, 0, 0}};
  for (int o = 0; o < (n == 3 ? 6 : n); o++) {
    int table = 0;
    for (int e = 0; e < size; e++) {
      int source = 0;
      for (int i = 0; i < n; i++) source |= (e >> (n - 1 - i) & 1) << (n - 1 - orders[o][i]);
      table |= ((node.table ^ flip) >> source & 1) << e;
    }
    if (o > 0 && table >= best.table) continue;
    best.table = static_cast<uint8_t>(table);
    for (int i = 0; i < n; i++) best.in[i] = node.in[orders[o][i]];
  }
  return best;
}

Ordered plain(int32_t id, bool negated) { return {id, 1, negated ? NOT : SAME, {id, 0, 0}}; }

bool by_key(const Ordered& a, const Ordered& b) {
  return a.key() != b.key() ? a.key() < b.key() : a.in[0] != b.in[0] ? a.in[0] < b.in[0] : a.in[1] < b.in[1];
}

// Runs of equal functions; each has `unit` functions or a multiple of it.
std::vector<Run> runs_of(const std::vector<Ordered>& functions, size_t begin, int64_t unit) {
  std::vector<Run> runs;
  for (size_t i = begin; i < functions.size();) {
    size_t end = i;
    while (end < functions.size() && functions[end].key() == functions[i].key()) end++;
    runs.push_back({functions[i].arity, functions[i].table, static_cast<int64_t>(end - i) / unit});
    i = end;
  }
  return runs;
}

class Scheduler {
 public:
  Scheduler(const GlCircuit& circuit, const GateList& net, Prepared& out)
      : circuit_(circuit), net_(net), out_(out), stored_(net.size(), 1), last_use_(net.size(), -1),
        slot_(net.size(), DUMP_SLOT) {
    slot_[0] = ZERO_SLOT;
  }

  void keep_outputs() {
    for (Literal output : net_.outputs) last_use_[output >> 1] = FOREVER;
  }

  void plan_sums() {
    std::vector<int32_t> sums(net_.size(), 0);
    for (Literal output : net_.outputs) sums[output >> 1]++;
    for (int32_t i = net_.first(); i < net_.size(); i++) stored_[i] = sums[i] > MOST_FUSED_READERS;
    for (const Node& node : net_.nodes)
      for (int k = 0; k < node.arity; k++) stored_[node.in[k]] = 1;
    const std::vector<uint8_t> read(stored_);
    for (int64_t c = 0; c < circuit_.classes; c++) plan_class(c, read);
  }

  void order_gates() {
    std::vector<int32_t> level(net_.size(), 0), width;
    for (int32_t i = net_.first(); i < net_.size(); i++) {
      const Node& node = net_.nodes[i - net_.first()];
      for (int k = 0; k < node.arity; k++) level[i] = std::max(level[i], level[node.in[k]] + 1);
      if (!stored_[i]) continue;
      if (static_cast<size_t>(level[i]) >= width.size()) width.resize(level[i] + 1, 0);
      width[level[i]]++;
    }
    std::vector<std::vector<Ordered>> levels(width.size());
    for (size_t l = 0; l < width.size(); l++) levels[l].reserve(width[l]);
    for (int32_t i = net_.first(); i < net_.size(); i++)
      if (stored_[i]) levels[level[i]].push_back(ordered(i, net_.nodes[i - net_.first()], false));
    for (std::vector<Ordered>& gates : levels) {
      std::sort(gates.begin(), gates.end(), by_key);
      const std::vector<Run> runs = runs_of(gates, 0, 1);
      out_.runs.insert(out_.runs.end(), runs.begin(), runs.end());
      order_.insert(order_.end(), gates.begin(), gates.end());
      std::vector<Ordered>().swap(gates);
    }
  }

  // Walks over the gates in their order. A slot goes back as soon as its last reader has read it, which may be the
  // gate that then writes it: what was just read is in L1.
  void give_slots() {
    for (size_t at = 0; at < order_.size(); at++)
      for (int k = 0; k < order_[at].arity; k++) {
        int32_t& last = last_use_[order_[at].in[k]];
        last = std::max(last, static_cast<int32_t>(at));
      }
    int32_t slots = DUMP_SLOT + 1;
    for (int32_t i = 1; i <= net_.inputs; i++)
      if (last_use_[i] >= 0) slot_[i] = slots++;
    std::vector<int32_t> free;
    for (size_t at = 0; at < order_.size(); at++) {
      const Ordered& gate = order_[at];
      for (int k = 0; k < gate.arity; k++) {
        out_.gates.push_back(static_cast<uint32_t>(slot_[gate.in[k]]));
        if (last_use_[gate.in[k]] == static_cast<int32_t>(at)) free.push_back(slot_[gate.in[k]]);
      }
      if (free.empty()) {
        slot_[gate.id] = slots++;
      } else {
        slot_[gate.id] = free.back();
        free.pop_back();
      }
      out_.gates.push_back(static_cast<uint32_t>(slot_[gate.id]));
      out_.gate_reads += gate.arity;
    }
    out_.program.slots = slots;
    out_.stored = static_cast<int64_t>(order_.size());
  }

  void finish(bool keep_outputs) {
    for (const Ordered& bit : summed_)
      for (int k = 0; k < bit.arity; k++) out_.sums.push_back(static_cast<uint32_t>(slot_[bit.in[k]]));
    out_.sum_reads = static_cast<int64_t>(out_.sums.size());
    out_.input_slot.assign(slot_.begin() + 1, slot_.begin() + 1 + net_.inputs);
    for (Literal output : net_.outputs) {
      if (!keep_outputs) break;
      out_.output_slot.push_back(slot_[output >> 1]);
      out_.output_negated.push_back(output & 1);
    }
  }

 private:
  // What a class sums: gates that are computed on the way in groups of GROUP, and rows that are there.
  void plan_class(int64_t c, const std::vector<uint8_t>& read) {
    uint32_t bias = static_cast<uint32_t>(circuit_.bias[c]);
    std::vector<Ordered> fused, rows;
    for (int64_t i = circuit_.group_start[c]; i < circuit_.group_start[c + 1]; i++) {
      const int32_t id = static_cast<int32_t>(net_.outputs[i] >> 1);
      const bool negated = net_.outputs[i] & 1;
      if (id == 0) bias += negated;
      else if (read[id] || id < net_.first()) rows.push_back(plain(id, negated));
      else fused.push_back(ordered(id, net_.nodes[id - net_.first()], negated));
    }
    const size_t begin = summed_.size();
    std::sort(fused.begin(), fused.end(), by_key);
    for (size_t i = 0; i < fused.size();) {
      size_t end = i;
      while (end < fused.size() && fused[end].key() == fused[i].key()) end++;
      const size_t whole = i + (end - i) / GROUP * GROUP;
      summed_.insert(summed_.end(), fused.begin() + i, fused.begin() + whole);
      out_.fused += static_cast<int64_t>(whole - i);
      // What fills no group is written to a row like any other gate. Nodes are 0 for zeros, so entry 0 tells negation.
      for (i = whole; i < end; i++) {
        stored_[fused[i].id] = 1;
        rows.push_back(plain(fused[i].id, fused[i].table & 1));
      }
    }
    for (const uint8_t table : {SAME, NOT}) {
      size_t count = 0;
      for (const Ordered& row : rows)
        if (row.table == table) summed_.push_back(row), count++;
      for (; count % GROUP; count++) {
        summed_.push_back({0, 1, table, {0, 0, 0}});  // zeros, which NOT counts as ones
        bias -= table == NOT;
      }
    }
    const std::vector<Run> runs = runs_of(summed_, begin, GROUP);
    out_.sum_runs.insert(out_.sum_runs.end(), runs.begin(), runs.end());
    for (size_t i = begin; i < summed_.size(); i++)
      for (int k = 0; k < summed_[i].arity; k++) last_use_[summed_[i].in[k]] = FOREVER;
    out_.summed += static_cast<int64_t>(summed_.size() - begin);
    out_.classes.push_back({static_cast<int64_t>(runs.size()), static_cast<int32_t>(summed_.size() - begin),
                            static_cast<int32_t>(bias)});
  }

  const GlCircuit& circuit_;
  const GateList& net_;
  Prepared& out_;
  std::vector<uint8_t> stored_;     // has a row
  std::vector<int32_t> last_use_;   // the last place in order_ that reads it
  std::vector<int32_t> slot_;
  std::vector<Ordered> order_, summed_;
};

// Indices of 16 bits halve the program, which is read once for each block of samples.
const void* shorten(bool possible, std::vector<uint32_t>& indices, std::vector<uint16_t>& shorter) {
  if (!possible) {
    indices.shrink_to_fit();
    return indices.data();
  }
  shorter.assign(indices.begin(), indices.end());
  std::vector<uint32_t>().swap(indices);
  return shorter.data();
}

}  // namespace

void schedule(const GlCircuit& circuit, const GateList& net, bool keep_outputs, Prepared& out) {
  Scheduler scheduler(circuit, net, out);
  if (keep_outputs) scheduler.keep_outputs();
  else scheduler.plan_sums();
  scheduler.order_gates();
  scheduler.give_slots();
  scheduler.finish(keep_outputs);
  if (!keep_outputs) plan_encoder(circuit, out.input_slot, out.encode);
  Program& p = out.program;
  p.wide_index = p.slots > 65536;
  p.gates = shorten(!p.wide_index, out.gates, out.short_gates);
  p.sums = shorten(!p.wide_index, out.sums, out.short_sums);
  p.features = circuit.features;
  p.feature_kind = circuit.feature_kind;
  p.encode = out.encode.data();
  p.encodes = static_cast<int64_t>(out.encode.size());
  p.runs = out.runs.data();
  p.run_count = static_cast<int64_t>(out.runs.size());
  p.sum_runs = out.sum_runs.data();
  p.classes = out.classes.data();
  p.class_count = static_cast<int32_t>(out.classes.size());
  p.input_slot = out.input_slot.data();
  p.inputs = static_cast<int64_t>(out.input_slot.size());
  p.output_slot = out.output_slot.data();
  p.output_negated = out.output_negated.data();
  p.outputs = static_cast<int64_t>(out.output_slot.size());
}

}  // namespace gatelight
