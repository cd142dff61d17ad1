#include "engine/lower/lower.h"

#include <algorithm>
#include <new>

#include "engine/lower/merge.h"

namespace gatelight {
namespace {

constexpr Literal FALSE = 0;
constexpr size_t MOST_NODES = size_t(1) << 30;  // literals have 32 bits
constexpr uint64_t MUX = 0xCA;  // inputs x, high, low: x ? high : low
constexpr uint64_t AND = 0x8, XOR = 0x6;

int entries(int arity) { return 1 << arity; }

// The table without input i, which takes the value that `choose` gives for each entry of the smaller table.
template <class Choose>
uint64_t without(uint64_t table, int arity, int i, Choose choose) {
  const int low = arity - 1 - i;  // inputs after it
  uint64_t result = 0;
  for (int e = 0; e < entries(arity - 1); e++) {
    const int whole = ((e >> low) << (low + 1)) | (choose(e) << low) | (e & (entries(low) - 1));
    result |= (table >> whole & 1) << e;
  }
  return result;
}

uint64_t cofactor(uint64_t table, int arity, int i, int value) {
  return without(table, arity, i, [=](int) { return value; });
}

void drop(Function& f, int i, uint64_t table) {
  f.table = table;
  f.arity--;
  std::copy(f.in + i + 1, f.in + f.arity + 1, f.in + i);
}

// Inputs become plain nodes, each once, and all of them matter.
void reduce(Function& f) {
  for (int i = f.arity - 1; i >= 0; i--) {
    const int negated = f.in[i] & 1;
    if (f.in[i] >> 1 == FALSE) {
      drop(f, i, cofactor(f.table, f.arity, i, negated));
      continue;
    }
    int twin = 0;
    while (f.in[twin] >> 1 != f.in[i] >> 1) twin++;
    if (twin < i) {
      const int flip = (f.in[twin] ^ f.in[i]) & 1, shift = f.arity - 2 - twin;
      drop(f, i, without(f.table, f.arity, i, [=](int e) { return (e >> shift & 1) ^ flip; }));
      continue;
    }
    if (negated) {
      const int bit = entries(f.arity - 1 - i);
      uint64_t swapped = 0;
      for (int e = 0; e < entries(f.arity); e++) swapped |= (f.table >> (e ^ bit) & 1) << e;
      f.table = swapped;
      f.in[i] ^= 1;
    }
  }
  for (int i = f.arity - 1; i >= 0; i--) {
    const uint64_t low = cofactor(f.table, f.arity, i, 0);
    if (low == cofactor(f.table, f.arity, i, 1)) drop(f, i, low);
  }
}

// The input to split on: the one whose two halves need the fewest inputs.
int split(const Function& f) {
  int best = 0, fewest = 100;
  for (int i = 0; i < f.arity; i++) {
    int needed = 0;
    for (int value = 0; value < 2; value++) {
      Function g = f;
      drop(g, i, cofactor(f.table, f.arity, i, value));
      reduce(g);
      needed += g.arity;
    }
    if (needed < fewest) best = i, fewest = needed;
  }
  return best;
}

}  // namespace

Literal Builder::make(Function f) {
  reduce(f);
  if (f.arity == 0) return f.table & 1;
  if (f.arity == 1) return f.in[0] ^ (f.table & 1);
  if (f.arity <= max_arity_) return add(f);
  const int i = split(f);
  const Literal x = f.in[i];
  const Literal low = half(f, i, 0), high = half(f, i, 1);
  Function mux{3, MUX, {x, high, low}};
  reduce(mux);
  if (mux.arity <= max_arity_) return make(mux);
  // low ^ (x & (low ^ high))
  const Literal change = make({2, XOR, {low, high}});
  return make({2, XOR, {low, make({2, AND, {x, change}})}});
}

Literal Builder::add(const Function& f) {
  if (net_.nodes.size() >= MOST_NODES) throw std::bad_alloc();
  const uint64_t all = (uint64_t(1) << entries(f.arity)) - 1;
  const bool negated = f.table & 1;
  Node node{{0, 0, 0}, static_cast<uint8_t>(f.arity), static_cast<uint8_t>(negated ? ~f.table & all : f.table)};
  for (int i = 0; i < f.arity; i++) node.in[i] = static_cast<int32_t>(f.in[i] >> 1);
  net_.nodes.push_back(node);
  return 2 * static_cast<Literal>(net_.size() - 1) + negated;
}

Literal Builder::half(const Function& f, int i, int value) {
  Function g = f;
  drop(g, i, cofactor(f.table, f.arity, i, value));
  return make(g);
}

GateList lower(const GlCircuit& circuit, int max_arity) {
  GateList net;
  net.inputs = static_cast<int32_t>(circuit.inputs);
  std::vector<Literal> literal(circuit.inputs + circuit.gates);
  for (int64_t i = 0; i < circuit.inputs; i++) literal[i] = static_cast<Literal>(2 * (i + 1));
  Builder build(net, max_arity);
  for (int64_t g = 0; g < circuit.gates; g++) {
    Function f;
    f.arity = circuit.arity[g];
    f.table = circuit.table[g] & (~uint64_t(0) >> (64 - entries(f.arity)));
    for (int i = 0; i < f.arity; i++) f.in[i] = literal[circuit.fanin[g * circuit.width + i]];
    literal[circuit.inputs + g] = build.make(f);
  }
  for (int64_t i = 0; i < circuit.outputs; i++) net.outputs.push_back(literal[circuit.output[i]]);
  drop_unread(net);
  if (max_arity == 3) merge(net);
  return net;
}

}  // namespace gatelight
