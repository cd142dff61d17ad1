// What one core can do with rows of 512 bits. Each function returns how many operations or rows it went through.
#include <stddef.h>
#include <stdint.h>

typedef uint64_t row __attribute__((vector_size(64)));

// Functions of three bits on registers, sixteen chains side by side.
uint64_t limits_logic(uint64_t rounds, row* out) {
  row r[16], a = out[16], b = out[17];
  for (int i = 0; i < 16; i++) r[i] = out[i];
  for (uint64_t n = 0; n < rounds; n++) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) r[i] ^= a & b;
    __asm__ volatile("" : "+v"(a), "+v"(b));
  }
  for (int i = 0; i < 16; i++) out[i] = r[i];
  return 16 * rounds;
}

// Rows read in the order that `at` names.
uint64_t limits_read(const row* rows, const uint32_t* at, size_t count, uint64_t rounds, row* out) {
  row r[8] = {{0}};
  for (uint64_t n = 0; n < rounds; n++)
    for (size_t i = 0; i + 8 <= count; i += 8) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; k++) r[k] ^= rows[at[i + k]];
    }
  for (int k = 0; k < 8; k++) out[k] = r[k];
  return rounds * (count / 8 * 8);
}
