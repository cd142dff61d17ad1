// Writes the few x86-64 instructions that straight-line code on rows of 512 or 64 bits is made of (AVX-512 F and VL).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace gatelight {

class Assembler {
 public:
  // Rows of 512 bits in zmm registers or of 64 bits in the lower half of xmm registers.
  explicit Assembler(bool wide) : wide_(wide), row_bytes_(wide ? 64 : 8) {}

  static constexpr int REGISTERS = 32;
  // Rows are named by 32-bit distances in bytes.
  static constexpr int32_t MOST_ROWS = 1 << 24;

  std::vector<uint8_t> bytes;

  // The code is a function of one argument, the address of row 0 (System V calling convention).
  void begin() {
    put({0xF3, 0x0F, 0x1E, 0xFA});  // endbr64: a place that may be called
    for (int r : SAVED) push(r);
    for (int i = BASES - 1; i >= 0; i--) point_at(i);  // the argument's own register last
  }
  void end() {
    for (int i = SAVED_COUNT - 1; i >= 0; i--) pop(SAVED[i]);
    put({0xC5, 0xF8, 0x77, 0xC3});  // vzeroupper, ret
  }

  void load(int to, int32_t row) {  // vmovdqa64 or vmovq
    wide_ ? with_row(P66, 1, 0x6F, to, 0, row, false) : with_row(PF3, 1, 0x7E, to, 0, row, false);
  }
  void store(int from, int32_t row) { with_row(P66, 1, wide_ ? 0x7F : 0xD6, from, 0, row, false); }
  void copy(int to, int from) { with_register(1, 0x6F, to, 0, from); }

  // to = a op b, where b is a register or a row.
  enum Logic : uint8_t { AND = 0xDB, AND_NOT = 0xDF, OR = 0xEB, XOR = 0xEF };  // AND_NOT: ~a & b
  void logic(Logic op, int to, int a, int b) { with_register(1, op, to, a, b); }
  void logic_row(Logic op, int to, int a, int32_t row) { with_row(P66, 1, op, to, a, row, !wide_); }

  // to = entry 4 to + 2 a + b of the table (vpternlogq).
  void lut3(uint8_t table, int to, int a, int b) {
    with_register(3, 0x25, to, a, b);
    bytes.push_back(table);
  }
  void lut3_row(uint8_t table, int to, int a, int32_t row) {
    with_row(P66, 3, 0x25, to, a, row, !wide_);
    bytes.push_back(table);
  }

 private:
  // An instruction names a row by a register and one byte, which counts rows from where that points, or four. Code is
  // fetched no faster than 16 bytes a cycle, so all registers but the stack's point into the rows, 256 rows apart. r12
  // comes last: it takes one byte more.
  static constexpr int BASES = 15, REACH = 256, HALF = 128, SAVED_COUNT = 6;
  static constexpr int BASE[BASES] = {7, 0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 13, 14, 15, 12};
  static constexpr int ARGUMENT = BASE[0];  // rdi
  static constexpr int SAVED[SAVED_COUNT] = {3, 5, 12, 13, 14, 15};

  void put(std::initializer_list<int> values) {
    for (int v : values) bytes.push_back(static_cast<uint8_t>(v));
  }
  void put32(int32_t value) {
    for (int i = 0; i < 4; i++) bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> (8 * i)));
  }
  void push(int r) { r < 8 ? put({0x50 + r}) : put({0x41, 0x50 + (r & 7)}); }
  void pop(int r) { r < 8 ? put({0x58 + r}) : put({0x41, 0x58 + (r & 7)}); }
  void point_at(int base) {  // lea BASE[base], [ARGUMENT + distance]
    put({0x48 | (BASE[base] >= 8 ? 4 : 0), 0x8D, 0x80 | (BASE[base] & 7) << 3 | ARGUMENT});
    put32((base * REACH + HALF) * row_bytes_);
  }

  enum Prefix { P66 = 1, PF3 = 2 };

  // The EVEX prefix and the opcode, all for operands of 64-bit lanes. `b` and `x` are bits 3 and 4 of the register that
  // the last operand names; with `broadcast` that is 64 bits of memory.
  void prefix(Prefix p, int map, int opcode, int reg, int a, int b, int x, bool broadcast) {
    put({0x62, (~reg >> 3 & 1) << 7 | (~x & 1) << 6 | (~b & 1) << 5 | (~reg >> 4 & 1) << 4 | map,
         1 << 7 | (~a & 15) << 3 | 4 | p,
         (wide_ ? 2 : 0) << 5 | (broadcast ? 1 : 0) << 4 | (~a >> 4 & 1) << 3, opcode});
  }
  void with_register(int map, int opcode, int reg, int a, int b) {
    prefix(P66, map, opcode, reg, a, b >> 3, b >> 4, false);
    put({0xC0 | (reg & 7) << 3 | (b & 7)});
  }
  void with_row(Prefix p, int map, int opcode, int reg, int a, int32_t row, bool broadcast) {
    const bool near = row < BASES * REACH;
    const int base = near ? BASE[row / REACH] : BASE[0];
    const int32_t distance = near ? row % REACH - HALF : row - HALF;
    prefix(p, map, opcode, reg, a, base >> 3, 0, broadcast);
    put({(near ? 1 : 2) << 6 | (reg & 7) << 3 | (base & 7)});
    if ((base & 7) == 4) put({0x24});
    if (near) put({distance & 255});
    else put32(distance * row_bytes_);
  }

  bool wide_;
  int row_bytes_;
};

}  // namespace gatelight
