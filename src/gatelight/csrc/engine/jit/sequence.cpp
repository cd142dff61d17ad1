#include "engine/jit/sequence.h"

#include <algorithm>
#include <cstddef>

#include "engine/lower/lower.h"

namespace gatelight {
namespace {

constexpr Literal NOT_YET = ~Literal(0), ZERO = 0, ONE = 1;
constexpr uint64_t XOR3 = 0x96, XOR = 0x6, AND = 0x8;
constexpr uint64_t CARRY = 0xD4;    // of a + b + c, from a, b and a ^ b ^ c
constexpr uint64_t GREATER = 0xB2;  // a > b, or a = b and the third
constexpr uint64_t MUX = 0xCA;      // the second if the first, else the third
constexpr int64_t MOST_SCORE = int64_t(1) << 30;

// Readers of so many gates that were made or read last are looked at for what comes next.
constexpr size_t RECENT = 64;
constexpr int32_t MOST_READERS = 8;
constexpr int32_t MOST_COST = 100;
// After this many reads a row has probably left L1, which holds 512 rows.
constexpr int64_t COLD = 600;

typedef std::vector<std::vector<Literal>> Bits;  // of each weight

// Lists of numbers, one for each node: items[begin[i]] .. items[end[i] - 1].
struct Lists {
  std::vector<int32_t> begin, end, items;

  // `each` calls a function with every pair of a node and a number.
  template <class Each>
  Lists(int32_t size, Each each) : begin(size + 1, 0) {
    each([&](int32_t node, int32_t) { begin[node + 1]++; });
    for (int32_t i = 0; i < size; i++) begin[i + 1] += begin[i];
    items.resize(begin[size]);
    end.assign(begin.begin(), begin.end() - 1);
    each([&](int32_t node, int32_t item) { items[end[node]++] = item; });
  }
  int32_t count(int32_t i) const { return end[i] - begin[i]; }
  void drop(int32_t i, int32_t at) { items[at] = items[--end[i]]; }
};

class Sequencer {
 public:
  Sequencer(const GateList& net, GateList& out)
      : net_(net), out_(out), build_(out, 3), made_(net.size(), NOT_YET), read_(net.size(), -COLD),
        counted_(net.size(), 0), readers_(net.size(), [&](auto pair) {
          for (int32_t i = net.first(); i < net.size(); i++)
            for (int k = 0; k < gate(i).arity; k++) pair(gate(i).in[k], i);
        }),
        outputs_(net.size(), [&](auto pair) {
          for (size_t i = 0; i < net.outputs.size(); i++)
            pair(static_cast<int32_t>(net.outputs[i] >> 1), static_cast<int32_t>(i));
        }) {
    out_.inputs = net.inputs;
    for (int32_t i = 0; i < net.first(); i++) made_[i] = 2 * static_cast<Literal>(i);
    for (int32_t i = 0; i < net.size(); i++) reads_left_.push_back(readers_.count(i));
  }

  // All gates, and for each class the sum of its outputs and `start`.
  void sum(const GlCircuit& circuit, const std::vector<uint32_t>& start) {
    for (int64_t c = 0; c < circuit.classes; c++) {
      const int32_t begin = circuit.group_start[c], end = circuit.group_start[c + 1];
      sums_.emplace_back(planes_for(end - begin + static_cast<int32_t>(start[c])));
      for (size_t w = 0; w < sums_[c].size(); w++)
        if (start[c] >> w & 1) add(sums_[c], w, ONE);
      class_of_.insert(class_of_.end(), end - begin, static_cast<int32_t>(c));
    }
    for (Literal output : net_.outputs) {
      if (made_[output >> 1] != NOT_YET) continue;
      compute(static_cast<int32_t>(output >> 1));
      for (int32_t near; (near = cheapest_near()) != 0;) compute(near);
    }
    for (int32_t i = 0; i < net_.first(); i++) add_to_sums(i);
    for (Bits& bits : sums_) {
      finish(bits);
      for (const std::vector<Literal>& plane : bits) out_.outputs.push_back(plane[0]);
    }
  }

  // The first class with the highest sum.
  void label() {
    Bits best = sums_[0];
    std::vector<Literal> label(planes_for(static_cast<int32_t>(sums_.size() - 1)), ZERO);
    for (size_t c = 1; c < sums_.size(); c++) {
      const Bits& rival = sums_[c];
      best.resize(std::max(best.size(), rival.size()), {ZERO});
      const auto bit = [&](size_t w) { return w < rival.size() ? rival[w][0] : ZERO; };
      Literal more = ZERO;
      for (size_t w = 0; w < best.size(); w++) more = build_.make({3, GREATER, {bit(w), best[w][0], more}});
      for (size_t w = 0; w < best.size(); w++) best[w][0] = build_.make({3, MUX, {more, bit(w), best[w][0]}});
      for (size_t b = 0; b < label.size(); b++)
        label[b] = build_.make({3, MUX, {more, c >> b & 1 ? ONE : ZERO, label[b]}});
    }
    out_.outputs.insert(out_.outputs.end(), label.begin(), label.end());
  }

 private:
  const Node& gate(int32_t id) const { return net_.nodes[id - net_.first()]; }

  // Adds a bit of weight 2^w: three of a weight become one of it and one of the next. No sum reaches 2^bits.size().
  void add(Bits& bits, size_t w, Literal bit) {
    for (; w < bits.size(); w++) {
      bits[w].push_back(bit);
      if (bits[w].size() < 3) return;
      const Literal a = bits[w][0], b = bits[w][1], c = bits[w][2], sum = build_.make({3, XOR3, {a, b, c}});
      bits[w] = {sum};
      // Of b, c and the sum, so that the sum may take the register of a.
      if (w + 1 < bits.size()) bit = build_.make({3, CARRY, {b, c, sum}});
    }
  }

  // Leaves one bit of each weight.
  void finish(Bits& bits) {
    for (size_t w = 0; w < bits.size(); w++) {
      if (bits[w].size() == 2) {
        const Literal a = bits[w][0], b = bits[w][1];
        bits[w] = {build_.make({2, XOR, {a, b}})};
        if (w + 1 < bits.size()) add(bits, w + 1, build_.make({2, AND, {a, b}}));
      }
      bits[w].resize(1, ZERO);
    }
  }

  void add_to_sums(int32_t id) {
    for (int32_t i = outputs_.begin[id]; i < outputs_.end[id]; i++) {
      const int32_t output = outputs_.items[i];
      add(sums_[class_of_[output]], 0, made_[id] ^ (net_.outputs[output] & 1));
    }
  }

  bool ready(int32_t id) const {
    const Node& node = gate(id);
    for (int k = 0; k < node.arity; k++)
      if (made_[node.in[k]] == NOT_YET) return false;
    return true;
  }

  // A gate and whatever it needs. Each gate is followed by those that were only waiting for it: a gate finds one of its
  // inputs in a register then, and its other inputs need not be there at the same time.
  void compute(int32_t id) {
    stack_.push_back(id);
    while (!stack_.empty()) {
      const int32_t top = stack_.back();
      if (made_[top] == NOT_YET && !ready(top)) {
        const Node& node = gate(top);
        for (int k = 0; k < node.arity; k++)
          if (made_[node.in[k]] == NOT_YET) stack_.push_back(node.in[k]);
        continue;
      }
      stack_.pop_back();
      if (made_[top] == NOT_YET) make(top);
    }
  }

  void make(int32_t id) {
    const Node& node = gate(id);
    Function f{node.arity, node.table, {}};
    for (int k = 0; k < node.arity; k++) {
      f.in[k] = made_[node.in[k]];
      reads_left_[node.in[k]]--;
      touch(node.in[k]);
    }
    made_[id] = build_.make(f);
    touch(id);
    add_to_sums(id);
    for (int32_t i = readers_.begin[id]; i < readers_.end[id]; i++)
      if (ready(readers_.items[i])) stack_.push_back(readers_.items[i]);
  }

  void touch(int32_t id) {
    read_[id] = ++clock_;
    if (id < net_.first() || reads_left_[id] == 0) return;
    const auto found = std::find(recent_.begin(), recent_.end(), id);
    if (found != recent_.end()) recent_.erase(found);
    else if (recent_.size() == RECENT) recent_.erase(recent_.begin());
    recent_.push_back(id);
  }

  // A gate that reads one of those in the window and that costs least, or 0 if there is none. Few readers of each are
  // looked at, those that are made are dropped on the way, and no cost is counted to the end: the time for a gate must
  // not depend on the circuit.
  int32_t cheapest_near() {
    int32_t best = 0, least = MOST_COST;
    for (size_t i = recent_.size(); i-- > 0;) {
      const int32_t id = recent_[i];
      for (int32_t at = readers_.begin[id]; at < readers_.end[id] && at - readers_.begin[id] < MOST_READERS;) {
        const int32_t reader = readers_.items[at];
        if (made_[reader] != NOT_YET) {
          readers_.drop(id, at);
          continue;
        }
        const int32_t c = cost(reader, least);
        if (c < least) best = reader, least = c;
        at++;
      }
    }
    return best;
  }

  // What it costs to make a gate and what it needs: gates, reads of rows that are far away, less rows it sets free.
  int32_t cost(int32_t id, int32_t limit) {
    int32_t total = 0;
    costs_++;
    stack_.push_back(id);
    while (!stack_.empty()) {
      const int32_t top = stack_.back();
      stack_.pop_back();
      if (made_[top] != NOT_YET) {
        total += (clock_ - read_[top] < COLD ? 0 : 4) - (reads_left_[top] == 1 ? 3 : 0);
        continue;
      }
      if (counted_[top] == costs_) continue;
      counted_[top] = costs_;
      total += 2;
      if (total >= limit) {
        stack_.clear();
        return limit;
      }
      const Node& node = gate(top);
      for (int k = 0; k < node.arity; k++) stack_.push_back(node.in[k]);
    }
    return total;
  }

  const GateList& net_;
  GateList& out_;
  Builder build_;
  std::vector<Literal> made_;         // the literal of each node
  std::vector<int64_t> read_;         // when it was made or read last
  std::vector<int64_t> counted_;      // the last cost() that counted it
  Lists readers_, outputs_;
  std::vector<int32_t> reads_left_;   // by gates that are not made yet
  std::vector<int32_t> class_of_;     // each output's
  std::vector<Bits> sums_;            // each class's
  std::vector<int32_t> stack_, recent_;
  int64_t clock_ = 0, costs_ = 0;
};

}  // namespace

bool sequence(const GlCircuit& circuit, const GateList& net, int64_t most_gates, Sequence& out) {
  const int64_t bias = *std::min_element(circuit.bias, circuit.bias + circuit.classes);
  // Two gates for a summed bit; for each class two for each bit of a score, to compare and choose, and one for each bit
  // of the label.
  const int64_t label = planes_for(static_cast<int32_t>(circuit.classes - 1));
  int64_t gates = static_cast<int64_t>(net.nodes.size() + 2 * net.outputs.size()) + circuit.classes * label;
  std::vector<uint32_t> start;
  for (int64_t c = 0; c < circuit.classes; c++) {
    const int64_t above = circuit.bias[c] - bias, most = above + circuit.group_start[c + 1] - circuit.group_start[c];
    if (most > MOST_SCORE) return false;
    gates += 2 * planes_for(static_cast<int32_t>(most));
    if (gates > most_gates) return false;
    start.push_back(static_cast<uint32_t>(above));
    out.classes.push_back({0, static_cast<int32_t>(most), static_cast<int32_t>(bias)});
  }
  Sequencer sequencer(net, out.net);
  sequencer.sum(circuit, start);
  sequencer.label();
  return true;
}

}  // namespace gatelight
