// The bit-packed engine: what a prepared circuit looks like, and what each SIMD path offers to run it.
//
// A row holds one bit of each sample of a block: 512 samples or, where there are few, 64. Gates read and write rows that
// are named by slots; a slot is reused once nothing reads it anymore.
#pragma once

#include <cstdint>

#include "gatelight.h"

namespace gatelight {

constexpr int BLOCK_512 = 512;
constexpr int BLOCK_64 = 64;
constexpr int WORD = 64;     // bits that the encoder makes at a time
constexpr int MASK_ROWS = WORD + 1;  // rows of masks from one word to the next; 64 would hit the same cache sets
constexpr int GROUP = 8;  // bits that are summed at a time
constexpr int STAGES = 11;   // of sums: 8^11 > 2^31
constexpr int LIST = 32;     // carries that wait at a stage, a multiple of GROUP
constexpr int ZERO_SLOT = 0;  // always holds zeros
constexpr int DUMP_SLOT = 1;  // for results that nothing reads

// A run of gates with one function. Table entry k is the output for inputs that are k in binary, first one leading.
struct Run {
  uint8_t arity;  // 1 (only sums) to 3
  uint8_t table;
  int64_t count;  // gates; of sums: groups of GROUP bits
};

// The bits of one class: runs of groups, then bias + the number of ones is the score.
struct Sum {
  int64_t runs;   // how many of Program::sum_runs
  int32_t bits;   // at most this many ones
  int32_t bias;   // may wrap on the way; the score fits
};

// Bits of counts of up to `most`. Static: the linker must not give one path's version to another.
static inline int planes_for(int32_t most) {
  int planes = 1;
  while (planes < 31 && most >> planes > 0) planes++;
  return planes;
}

// Machine code that takes the rows of a block from inputs to scores and labels.
typedef void (*CodeFunction)(uint64_t* rows);

// 64 input bits that are made together: bit i is x[first + i] > threshold[i], or x[feature[i]] where `gathered`.
struct alignas(64) Encode {
  uint8_t least[WORD];     // uint8: smallest value that sets the bit
  float threshold[WORD];   // +inf for bits that nothing reads
  int32_t feature[WORD];
  int32_t slot[WORD];
  uint64_t possible;       // uint8: bits that some value sets
  int64_t first;
  bool gathered;
};

// Indices are uint16 or uint32 (`wide_index`). A gate takes arity + 1 of them, its inputs and its output's slot; a
// group of sums takes GROUP * arity.
struct Program {
  int32_t slots;
  bool wide_index;
  int64_t features;
  int32_t feature_kind;
  const Encode* encode;
  int64_t encodes;
  const Run* runs;
  int64_t run_count;
  const void* gates;
  const Run* sum_runs;
  const void* sums;
  const Sum* classes;
  int32_t class_count;
  // For runs on bits: which slot each input goes to (DUMP_SLOT if unread), where each output is, and whether negated.
  const int32_t* input_slot;
  int64_t inputs;
  const int32_t* output_slot;
  const uint8_t* output_negated;
  int64_t outputs;
  // Instead of runs and sums, or null: code that leaves, from row `results` on, the bits of each class's count, lowest
  // first, and then those of the label.
  CodeFunction code_512, code_64;
  int32_t results;
};

enum EngineInput { ENGINE_UINT8 = 0, ENGINE_FLOAT32 = 1 };

struct Samples {
  int32_t kind;
  const char* data;
  int64_t stride;  // bytes from one sample to the next
  int64_t batch;
  int32_t* scores;  // [batch, classes] or null
  int64_t* labels;  // [batch] or null
};

struct Packed {
  const uint64_t* words;  // [inputs, count]
  uint64_t* out;          // [outputs, count]
  int64_t count;
};

// Bytes of scratch, 64-byte aligned, that a thread needs for blocks of up to `samples`.
static inline int64_t engine_scratch(const Program& program, int samples) {
  const int64_t row = samples / 8, line = 64;
  const int64_t counter = STAGES * (3 + LIST) * row + STAGES * 4;
  return (program.slots + program.encodes * MASK_ROWS) * row + counter + 3 * samples * 4 + 4 * line;
}

// What each SIMD path offers to run programs.
struct Interpreter {
  int max_arity;  // of the gates it runs
  bool runs_code;
  // Samples first .. first + count; count <= BLOCK_512. False if a feature is not of the kind.
  bool (*block)(const Program& program, const Samples& samples, int64_t first, int count, char* scratch);
  // Words first .. first + count of every row; count <= BLOCK_512 / 64.
  void (*bits)(const Program& program, const Packed& packed, int64_t first, int count, char* scratch);
};

}  // namespace gatelight
