#include "engine/jit/code.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/jit/x86.h"

#if defined(GL_HAVE_X86) && (defined(__unix__) || defined(__APPLE__)) && !defined(__CYGWIN__)
#define GL_CAN_MAKE_CODE 1
#include <sys/mman.h>
#endif

namespace gatelight {
namespace {

constexpr int32_t NEVER = std::numeric_limits<int32_t>::max();
constexpr int NONE = -1;
constexpr uint8_t NOT_LAST = 0x55;  // of three inputs

// Walks over the gates once and writes their instructions. When a register is needed, the value that is read again last
// leaves its own (Belady's rule) and is written to a row, unless it has one.
class Writer {
 public:
  Writer(const GateList& net, bool wide)
      : assembler(wide), net_(net), register_of_(net.size(), NONE), row_of_(net.size(), NONE) {
    std::fill(holds_, holds_ + Assembler::REGISTERS, NONE);
    find_uses();
    row_of_[0] = ZERO_SLOT;
    for (int32_t i = 1; i < net.first(); i++) row_of_[i] = dead(i) ? DUMP_SLOT : rows++;
    input_row.assign(row_of_.begin() + 1, row_of_.begin() + net.first());
  }

  void write() {
    assembler.begin();
    for (int32_t id = net_.first(); id < net_.size(); id++) {
      const Node& node = net_.nodes[id - net_.first()];
      for (int k = 0; k < node.arity; k++) next_[node.in[k]]++;
      const int to = node.arity == 2 ? two(node) : three(node);
      if (holds_[to] != NONE) forget(holds_[to]);
      put_in(to, id);
      for (int k = 0; k < node.arity; k++) leave(node.in[k]);
      leave(id);
    }
    first_output = rows;
    rows += static_cast<int32_t>(net_.outputs.size());
    for (size_t i = 0; i < net_.outputs.size(); i++) {
      const int32_t value = static_cast<int32_t>(net_.outputs[i] >> 1);
      next_[value]++;
      int from = in_register(value, 0);
      if (net_.outputs[i] & 1) {
        const int negated = free_register(1u << from);
        assembler.lut3(NOT_LAST, negated, from, from);
        from = negated;
      }
      assembler.store(from, first_output + static_cast<int32_t>(i));
      writes++;
      leave(value);
    }
    assembler.end();
  }

  Assembler assembler;
  int32_t rows = DUMP_SLOT + 1, first_output = 0;
  std::vector<int32_t> input_row;
  int64_t reads = 0, writes = 0;  // of rows

 private:
  // The places that read v, gates and then outputs, are uses_[next_[v]] .. uses_[end_[v] - 1].
  void find_uses() {
    std::vector<int32_t> begin(net_.size() + 1, 0);
    const auto each = [&](auto use) {
      int32_t at = 0;
      for (const Node& node : net_.nodes) {
        for (int k = 0; k < node.arity; k++) use(node.in[k], at);
        at++;
      }
      for (Literal output : net_.outputs) use(static_cast<int32_t>(output >> 1), at++);
    };
    each([&](int32_t v, int32_t) { begin[v + 1]++; });
    for (int32_t v = 0; v < net_.size(); v++) begin[v + 1] += begin[v];
    uses_.resize(begin.back());
    next_.assign(begin.begin(), begin.end() - 1);
    each([&](int32_t v, int32_t at) { uses_[next_[v]++] = at; });
    end_ = std::move(next_);
    next_.assign(begin.begin(), begin.end() - 1);
  }
  bool dead(int32_t v) const { return next_[v] == end_[v]; }
  int32_t next_use(int32_t v) const { return dead(v) ? NEVER : uses_[next_[v]]; }

  void put_in(int r, int32_t v) {
    holds_[r] = v;
    register_of_[v] = static_cast<int8_t>(r);
  }
  void forget(int32_t v) {
    holds_[register_of_[v]] = NONE;
    register_of_[v] = NONE;
  }
  // Frees what a value occupies once nothing reads it anymore.
  void leave(int32_t v) {
    if (!dead(v) || v == 0) return;
    if (register_of_[v] != NONE) forget(v);
    if (row_of_[v] != NONE) free_rows_.push_back(row_of_[v]);
    row_of_[v] = NONE;
  }
  // Makes sure that a value has a row: the one that was freed last, which is in L1.
  void save(int32_t v) {
    if (row_of_[v] != NONE || dead(v)) return;
    if (free_rows_.empty()) free_rows_.push_back(rows++);
    row_of_[v] = free_rows_.back();
    free_rows_.pop_back();
    assembler.store(register_of_[v], row_of_[v]);
    writes++;
  }

  // The register, none of those in `pinned`, that is free or whose value is read again last.
  int furthest(uint32_t pinned) const {
    int best = NONE;
    for (int r = 0; r < Assembler::REGISTERS; r++) {
      if (pinned >> r & 1) continue;
      if (holds_[r] == NONE) return r;
      if (best == NONE || next_use(holds_[r]) > next_use(holds_[best])) best = r;
    }
    return best;
  }
  int free_register(uint32_t pinned) {
    const int r = furthest(pinned);
    if (holds_[r] != NONE) {
      save(holds_[r]);
      forget(holds_[r]);
    }
    return r;
  }
  int in_register(int32_t v, uint32_t pinned) {
    if (register_of_[v] != NONE) return register_of_[v];
    const int r = free_register(pinned);
    load(r, v);
    put_in(r, v);
    return r;
  }
  void load(int r, int32_t v) {
    assembler.load(r, row_of_[v]);
    reads++;
  }
  // Whether a value that is read from its row should take a register on the way.
  bool worth_keeping(int32_t v, uint32_t pinned) const {
    if (dead(v)) return false;
    const int r = furthest(pinned);
    return holds_[r] == NONE || next_use(holds_[r]) > next_use(v);
  }
  uint32_t registers_of(const Node& node) const {
    uint32_t all = 0;
    for (int k = 0; k < node.arity; k++)
      if (register_of_[node.in[k]] != NONE) all |= 1u << register_of_[node.in[k]];
    return all;
  }

  // Loads inputs until at most one is not in a register, and that one too if it pays; returns which is not, or NONE.
  int load_inputs(const Node& node) {
    for (;;) {
      int soonest = NONE, missing = 0;
      for (int k = 0; k < node.arity; k++) {
        if (register_of_[node.in[k]] != NONE) continue;
        missing++;
        if (soonest == NONE || next_use(node.in[k]) < next_use(node.in[soonest])) soonest = k;
      }
      if (missing == 0) return NONE;
      if (missing == 1 && !worth_keeping(node.in[soonest], registers_of(node))) return soonest;
      in_register(node.in[soonest], registers_of(node));
    }
  }
  // An input in a register that nothing reads anymore, or NONE.
  int last_read(const Node& node) const {
    for (int k = 0; k < node.arity; k++)
      if (register_of_[node.in[k]] != NONE && dead(node.in[k])) return k;
    return NONE;
  }

  // Both write a gate and return the register of the result, which may be that of an input that is not read anymore.
  int two(const Node& node) {
    const int in_row = load_inputs(node), last = last_read(node);
    const int to = last == NONE ? free_register(registers_of(node)) : register_of_[node.in[last]];
    const bool swapped = in_row == 0;  // the second may be a row
    const int32_t first = node.in[swapped], second = node.in[!swapped];
    const int table = swapped ? (node.table & 9) | (node.table & 2) << 1 | (node.table & 4) >> 1 : node.table;
    const int a = register_of_[first], b = register_of_[second];
    const int32_t row = row_of_[second];
    const auto logic = [&](Assembler::Logic op) {
      in_row == NONE ? assembler.logic(op, to, a, b) : assembler.logic_row(op, to, a, row);
    };
    switch (table) {
      case 8: logic(Assembler::AND); break;
      case 14: logic(Assembler::OR); break;
      case 6: logic(Assembler::XOR); break;
      case 2: logic(Assembler::AND_NOT); break;
      default:  // 4, the first and not the second: gates are 0 for zeros and need both inputs
        if (in_row == NONE) assembler.logic(Assembler::AND_NOT, to, b, a);
        else assembler.lut3_row(static_cast<uint8_t>(table << 4 | table), to, a, row);
    }
    reads += in_row != NONE;
    return to;
  }

  int three(const Node& node) {
    int in_row = load_inputs(node), first = last_read(node), to;
    if (first != NONE) {
      to = register_of_[node.in[first]];
    } else {
      to = free_register(registers_of(node));
      first = in_row == NONE ? 0 : in_row;
      if (in_row == NONE) assembler.copy(to, register_of_[node.in[0]]);
      else load(to, node.in[in_row]);
      in_row = NONE;
    }
    int order[3] = {first, (first + 1) % 3, (first + 2) % 3};
    if (order[1] == in_row) std::swap(order[1], order[2]);
    int table = 0;
    for (int e = 0; e < 8; e++) {
      int source = 0;
      for (int i = 0; i < 3; i++) source |= (e >> (2 - i) & 1) << (2 - order[i]);
      table |= (node.table >> source & 1) << e;
    }
    const int second = register_of_[node.in[order[1]]];
    const int32_t third = node.in[order[2]];
    if (in_row == NONE) assembler.lut3(static_cast<uint8_t>(table), to, second, register_of_[third]);
    else assembler.lut3_row(static_cast<uint8_t>(table), to, second, row_of_[third]);
    reads += in_row != NONE;
    return to;
  }

  const GateList& net_;
  int32_t holds_[Assembler::REGISTERS];
  std::vector<int8_t> register_of_;
  std::vector<int32_t> row_of_, free_rows_, uses_, next_, end_;
};

}  // namespace

#if defined(GL_CAN_MAKE_CODE)
Code::~Code() {
  if (memory_) munmap(memory_, bytes_);
}

bool Code::make(const GateList& net) {
  if (net.size() + static_cast<int64_t>(net.outputs.size()) >= Assembler::MOST_ROWS) return false;
  std::vector<uint8_t> second;
  {
    Writer writer(net, false);
    writer.write();
    second = std::move(writer.assembler.bytes);
  }
  Writer writer(net, true);
  writer.write();
  const std::vector<uint8_t>& first = writer.assembler.bytes;
  const size_t between = (first.size() + 63) / 64 * 64, bytes = between + second.size();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* code = static_cast<char*>(memory);
  std::memcpy(code, first.data(), first.size());
  std::memcpy(code + between, second.data(), second.size());
  // Writable or executable, never both.
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC)) {
    munmap(memory, bytes);
    return false;
  }
  memory_ = memory;
  bytes_ = bytes;
  block_512 = reinterpret_cast<CodeFunction>(code);
  block_64 = reinterpret_cast<CodeFunction>(code + between);
  bytes_512 = first.size();
  rows = writer.rows;
  first_output = writer.first_output;
  input_row = std::move(writer.input_row);
  gates = static_cast<int64_t>(net.nodes.size());
  reads = writer.reads;
  writes = writer.writes;
  return true;
}
#else
Code::~Code() = default;
bool Code::make(const GateList&) { return false; }
#endif

}  // namespace gatelight
