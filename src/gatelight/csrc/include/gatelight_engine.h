// The part of the C ABI that runs circuits.
#pragma once

#include "gatelight.h"

// What a feature is.
enum GlFeatureKind {
  GL_FEATURE_BITS = 0,   // 0 or 1
  GL_FEATURE_BYTES = 1,  // a number from 0 to 1; a byte u means u / 255, with other kinds u
  GL_FEATURE_REALS = 2,  // a finite number
};

// The fields of a Circuit, as arrays. A net is an input (0 .. inputs - 1) or inputs + a gate's number.
struct GlCircuit {
  int64_t inputs, gates, width;
  const int32_t* fanin;   // [gates, width], each smaller than the gate's own net, -1 beyond its arity
  const uint8_t* arity;   // [gates], 0 to 6
  const uint64_t* table;  // [gates]
  int64_t outputs;
  const int32_t* output;  // [outputs]
  int64_t classes;
  const int32_t* group_start;  // [classes + 1]
  const int32_t* bias;         // [classes]
  int64_t features;
  const int32_t* encoder_feature;  // [inputs]
  const float* encoder_threshold;  // [inputs]
  int32_t feature_kind;            // GlFeatureKind
};

// A number that describes a prepared engine.
enum GlEngineStat {
  GL_ENGINE_GATES = 0,          // gates that write a row
  GL_ENGINE_FUSED_GATES = 1,    // gates whose result is summed and never written
  GL_ENGINE_RUNS = 2,           // runs of gates with one function, sums included
  GL_ENGINE_SLOTS = 3,          // rows of a block that exist at a time
  GL_ENGINE_GATE_READS = 4,     // rows read by gates that write one
  GL_ENGINE_SUM_READS = 5,      // rows read for the sums
  GL_ENGINE_ENCODER_WORDS = 6,  // words of 64 bits that the encoder makes for a sample
  GL_ENGINE_SUMMED_BITS = 7,    // bits that are summed
  GL_ENGINE_PROGRAM_BYTES = 8,
  GL_ENGINE_SCRATCH_BYTES = 9,  // of one thread
  GL_ENGINE_CODE_BYTES = 10,    // of machine code for a block of 512 samples; 0 if the circuit is interpreted
  GL_ENGINE_CODE_GATES = 11,    // gates that it computes, those of sums and comparisons included
  GL_ENGINE_CODE_READS = 12,    // rows that it reads
  GL_ENGINE_CODE_WRITES = 13,   // rows that it writes
};

// Checks the circuit and prepares it for a SIMD path (null: the current one of gl_simd), as machine code if `code` is
// not 0 and the path and the system can run it. Returns null and sets `status` if an index is out of range or memory
// runs out. The arrays are copied.
GL_API void* gl_engine_new(const GlCircuit* circuit, const char* simd, int32_t code, int32_t* status);
GL_API void gl_engine_free(void* engine);
GL_API const char* gl_engine_simd(const void* engine);
GL_API int64_t gl_engine_stat(const void* engine, int32_t which);

// Scores int32 [batch, classes] and labels int64 [batch] (either may be null) of uint8 (kind 0) or float32 (kind 1)
// samples, each of contiguous features, `stride` bytes apart. GL_BAD_ARGUMENT if a feature is not of the circuit's kind.
GL_API int32_t gl_engine_run(const void* engine, int32_t kind, const void* x, int64_t stride, int64_t batch,
                             int32_t threads, int32_t* scores, int64_t* labels);
// Packed bits [inputs, words] to packed outputs [outputs, words].
GL_API int32_t gl_engine_bits(void* engine, const uint64_t* words, int64_t count, int32_t threads, uint64_t* out);
