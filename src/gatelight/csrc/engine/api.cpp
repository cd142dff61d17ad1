// The exported functions of the engine: checks, memory, and how a batch is cut into blocks for the threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "engine/interpret/schedule.h"
#include "engine/jit/code.h"
#include "engine/jit/sequence.h"
#include "engine/lower/lower.h"
#include "engine/program.h"
#include "gatelight_engine.h"
#include "runtime/memory.h"
#include "runtime/paths.h"
#include "runtime/pool.h"

namespace gatelight {
namespace {

constexpr int64_t HUGE_PAGE = int64_t(2) << 20;

// More gates make so much code that it falls out of L3: between 11 and 17 MB interpreting becomes faster.
constexpr int64_t MOST_CODE_GATES = 750000;

// How a circuit is run: by a program to interpret, or by machine code with the encoder and the classes around it.
struct Handle {
  const Path* path;
  GateList net;
  Prepared scores, bits;
  std::unique_ptr<Code> code;
  std::once_flag has_bits;
};

// Makes machine code; leaves the handle as it was and returns false if that cannot be done here.
bool prepare_code(const GlCircuit& circuit, Handle& h) try {
  Sequence gates;
  auto code = std::make_unique<Code>();
  if (!h.path->interpreter.runs_code || !sequence(circuit, h.net, MOST_CODE_GATES, gates)) return false;
  if (!code->make(gates.net)) return false;
  Prepared out;
  plan_encoder(circuit, code->input_row, out.encode);
  out.classes = std::move(gates.classes);
  out.summed = static_cast<int64_t>(h.net.outputs.size());
  Program& p = out.program;
  p.slots = code->rows;
  p.features = circuit.features;
  p.feature_kind = circuit.feature_kind;
  p.encode = out.encode.data();
  p.encodes = static_cast<int64_t>(out.encode.size());
  p.classes = out.classes.data();
  p.class_count = static_cast<int32_t>(circuit.classes);
  p.code_512 = code->block_512;
  p.code_64 = code->block_64;
  p.results = code->first_output;
  h.scores = std::move(out);
  h.code = std::move(code);
  return true;
} catch (const std::bad_alloc&) {
  return false;  // the interpreter needs less
}

// A caller may be wrong about its own arrays; beyond this point indices are trusted.
bool valid(const GlCircuit& c) {
  const int64_t most = int64_t(1) << 31;
  if (c.inputs < 0 || c.gates < 0 || c.width < 0 || c.outputs < 0 || c.classes < 1 || c.features < 0) return false;
  if (c.inputs + c.gates >= most || c.outputs >= most || c.classes >= most || c.width > 6) return false;
  if (c.feature_kind < GL_FEATURE_BITS || c.feature_kind > GL_FEATURE_REALS) return false;
  for (int64_t g = 0; g < c.gates; g++) {
    if (c.arity[g] > c.width) return false;
    for (int k = 0; k < c.arity[g]; k++) {
      const int32_t net = c.fanin[g * c.width + k];
      if (net < 0 || net >= c.inputs + g) return false;
    }
  }
  for (int64_t i = 0; i < c.outputs; i++)
    if (c.output[i] < 0 || c.output[i] >= c.inputs + c.gates) return false;
  for (int64_t i = 0; i < c.inputs; i++)
    if (c.encoder_feature[i] < 0 || c.encoder_feature[i] >= c.features) return false;
  if (c.group_start[0] != 0 || c.group_start[c.classes] != c.outputs) return false;
  for (int64_t i = 0; i < c.classes; i++)
    if (c.group_start[i] > c.group_start[i + 1]) return false;
  return true;
}

// Calls work(block, scratch) for each block on up to `threads` threads, until one returns false; GL_OK or what failed.
template <class Work>
int32_t for_blocks(int64_t blocks, int threads, int64_t scratch_bytes, Work work) {
  // Rows are read in random order: on pages of 4 KiB their addresses would not fit the processor's table.
  const size_t bytes = static_cast<size_t>(blocks > 1 ? std::max(scratch_bytes, HUGE_PAGE) : scratch_bytes);
  threads = static_cast<int>(std::min<int64_t>(threads, blocks));
  std::vector<Block> scratch(static_cast<size_t>(std::max(threads, 1)));
  std::atomic<int32_t> status{GL_OK};
  parallel(blocks, threads, [&](int64_t b, int slot) {
    if (status != GL_OK) return;
    Block& mine = scratch[static_cast<size_t>(slot)];
    if (!mine.data) mine.data = acquire(bytes);
    if (!mine.data) status = GL_NO_MEMORY;
    else if (!work(b, static_cast<char*>(mine.data))) status = GL_BAD_ARGUMENT;
  });
  return status;
}

int64_t bytes_of(const Prepared& p) {
  return static_cast<int64_t>(4 * (p.gates.size() + p.sums.size()) + 2 * (p.short_gates.size() + p.short_sums.size()) +
                              sizeof(Run) * (p.runs.size() + p.sum_runs.size()) + sizeof(Encode) * p.encode.size() +
                              sizeof(Sum) * p.classes.size() + 4 * (p.input_slot.size() + p.output_slot.size()) +
                              p.output_negated.size());
}

}  // namespace
}  // namespace gatelight

using namespace gatelight;

void* gl_engine_new(const GlCircuit* circuit, const char* simd, int32_t code, int32_t* status) try {
  *status = GL_BAD_ARGUMENT;
  const Path* chosen = simd ? find_path(simd) : &path();
  if (!circuit || !chosen || !valid(*circuit)) return nullptr;
  auto handle = std::make_unique<Handle>();
  handle->path = chosen;
  handle->net = lower(*circuit, chosen->interpreter.max_arity);
  if (!code || !prepare_code(*circuit, *handle)) schedule(*circuit, handle->net, false, handle->scores);
  *status = GL_OK;
  return handle.release();
} catch (const std::bad_alloc&) {
  *status = GL_NO_MEMORY;
  return nullptr;
} catch (const std::length_error&) {
  *status = GL_NO_MEMORY;
  return nullptr;
}

void gl_engine_free(void* engine) { delete static_cast<Handle*>(engine); }

const char* gl_engine_simd(const void* engine) { return static_cast<const Handle*>(engine)->path->name; }

int64_t gl_engine_stat(const void* engine, int32_t which) {
  const Handle& h = *static_cast<const Handle*>(engine);
  const Prepared& p = h.scores;
  switch (which) {
    case GL_ENGINE_GATES: return p.stored;
    case GL_ENGINE_FUSED_GATES: return p.fused;
    case GL_ENGINE_RUNS: return static_cast<int64_t>(p.runs.size() + p.sum_runs.size());
    case GL_ENGINE_SLOTS: return p.program.slots;
    case GL_ENGINE_GATE_READS: return p.gate_reads;
    case GL_ENGINE_SUM_READS: return p.sum_reads;
    case GL_ENGINE_ENCODER_WORDS: return p.program.encodes;
    case GL_ENGINE_SUMMED_BITS: return p.summed;
    case GL_ENGINE_PROGRAM_BYTES:
      return bytes_of(p) + bytes_of(h.bits) + static_cast<int64_t>(sizeof(Node) * h.net.nodes.size()) +
             static_cast<int64_t>(h.code ? h.code->bytes() : 0);
    case GL_ENGINE_SCRATCH_BYTES: return engine_scratch(p.program, BLOCK_512);
    case GL_ENGINE_CODE_BYTES: return h.code ? static_cast<int64_t>(h.code->bytes_512) : 0;
    case GL_ENGINE_CODE_GATES: return h.code ? h.code->gates : 0;
    case GL_ENGINE_CODE_READS: return h.code ? h.code->reads : 0;
    case GL_ENGINE_CODE_WRITES: return h.code ? h.code->writes : 0;
    default: return -1;
  }
}

int32_t gl_engine_run(const void* engine, int32_t kind, const void* x, int64_t stride, int64_t batch, int32_t threads,
                      int32_t* scores, int64_t* labels) try {
  const Handle& h = *static_cast<const Handle*>(engine);
  if ((kind != ENGINE_UINT8 && kind != ENGINE_FLOAT32) || batch < 0 || threads < 1) return GL_BAD_ARGUMENT;
  const Program& program = h.scores.program;
  const Samples samples{kind, static_cast<const char*>(x), stride, batch, scores, labels};
  const int64_t blocks = (batch + BLOCK_512 - 1) / BLOCK_512;
  const int64_t scratch = engine_scratch(program, batch <= BLOCK_64 ? BLOCK_64 : BLOCK_512);
  return for_blocks(blocks, threads, scratch, [&](int64_t b, char* memory) {
    const int64_t first = b * BLOCK_512;
    const int count = static_cast<int>(std::min<int64_t>(BLOCK_512, batch - first));
    return h.path->interpreter.block(program, samples, first, count, memory);
  });
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_engine_bits(void* engine, const uint64_t* words, int64_t count, int32_t threads, uint64_t* out) try {
  Handle& h = *static_cast<Handle*>(engine);
  if (count < 0 || threads < 1) return GL_BAD_ARGUMENT;
  std::call_once(h.has_bits, [&] {
    Prepared whole;  // if memory runs out now, the next call starts over
    schedule(GlCircuit{}, h.net, true, whole);
    h.bits = std::move(whole);
  });
  const Program& program = h.bits.program;
  const Packed packed{words, out, count};
  constexpr int64_t STEP = BLOCK_512 / 64;
  return for_blocks((count + STEP - 1) / STEP, threads, engine_scratch(program, count <= 1 ? BLOCK_64 : BLOCK_512),
                    [&](int64_t b, char* memory) {
                      const int64_t first = b * STEP;
                      const int words_here = static_cast<int>(std::min(STEP, count - first));
                      h.path->interpreter.bits(program, packed, first, words_here, memory);
                      return true;
                    });
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}
