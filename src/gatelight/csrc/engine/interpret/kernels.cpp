// One SIMD path of the interpreter.
#include "engine/interpret/encode.h"
#include "engine/interpret/gates.h"
#include "engine/interpret/scores.h"
#include "engine/interpret/sums.h"
#include "engine/program.h"
#include "runtime/paths.h"

namespace gatelight {
namespace engine::GL_PATH {

#if defined(__AVX512F__)
constexpr bool RUNS_CODE = true;
#else
constexpr bool RUNS_CODE = false;
#endif

// The arrays of a thread, laid out in its scratch.
template <class R>
struct Work {
  uint64_t *rows, *masks;
  Counter<R>* counter;
  int32_t *numbers, *best, *label;

  Work(const Program& program, char* scratch) {
    rows = reinterpret_cast<uint64_t*>(scratch);
    masks = rows + (int64_t)program.slots * R::WORDS;
    uint64_t* end = masks + program.encodes * MASK_ROWS * R::WORDS;
    // Rows of 64 bits may end between two cache lines.
    end = reinterpret_cast<uint64_t*>((reinterpret_cast<uintptr_t>(end) + 63) / 64 * 64);
    counter = reinterpret_cast<Counter<R>*>(end);
    numbers = reinterpret_cast<int32_t*>((reinterpret_cast<uintptr_t>(counter + 1) + 63) / 64 * 64);
    best = numbers + R::SAMPLES;
    label = best + R::SAMPLES;
    R::zeros().store(rows, ZERO_SLOT);
  }
};

template <class R, class I>
static void sum_classes(const Program& program, const Samples& s, int64_t first, int count, const Work<R>& work) {
  const I* p = static_cast<const I*>(program.sums);
  const Run* runs = program.sum_runs;
  for (int32_t c = 0; c < program.class_count; c++) {
    const Sum& sum = program.classes[c];
    p = count_class<R, I>(runs, sum, work.rows, p, *work.counter);
    runs += sum.runs;
    int32_t* numbers = c == 0 ? work.best : work.numbers;
    to_numbers(work.counter->plane, sum, numbers);
    if (s.scores)
      for (int i = 0; i < count; i++) s.scores[(first + i) * program.class_count + c] = numbers[place<R>(i)];
    if (c > 0) challenge(numbers, c, R::SAMPLES, work.best, work.label);
    else
      for (int i = 0; i < R::SAMPLES; i++) work.label[i] = 0;
  }
  if (s.labels)
    for (int i = 0; i < count; i++) s.labels[first + i] = work.label[place<R>(i)];
}

// The same where machine code has counted and compared.
template <class R>
static void read_results(const Program& program, const Samples& s, int64_t first, int count, const Work<R>& work) {
  const R* planes = reinterpret_cast<const R*>(work.rows) + program.results;
  for (int32_t c = 0; c < program.class_count; c++) {
    const Sum& sum = program.classes[c];
    if (s.scores) {
      to_numbers(planes, sum, work.numbers);
      for (int i = 0; i < count; i++) s.scores[(first + i) * program.class_count + c] = work.numbers[place<R>(i)];
    }
    planes += planes_for(sum.bits);
  }
  if (!s.labels) return;
  to_numbers(planes, Sum{0, program.class_count - 1, 0}, work.label);
  for (int i = 0; i < count; i++) s.labels[first + i] = work.label[place<R>(i)];
}

template <class R, class I>
static bool run_block(const Program& program, const Samples& s, int64_t first, int count, char* scratch) {
  const Work<R> work(program, scratch);
  const bool fine = s.kind == ENGINE_UINT8
                        ? encode_block<uint8_t, R>(program, s, first, count, work.masks, work.rows)
                        : encode_block<float, R>(program, s, first, count, work.masks, work.rows);
  if (!fine) return false;
  if (program.code_512) {
    (R::SAMPLES == BLOCK_512 ? program.code_512 : program.code_64)(work.rows);
    read_results(program, s, first, count, work);
    return true;
  }
  run_gates<R, I>(program, work.rows);
  sum_classes<R, I>(program, s, first, count, work);
  return true;
}

// One sample, as fast as possible.
template <class I>
static bool run_one(const Program& program, const Samples& s, int64_t at, char* scratch) {
  const Work<Row64> work(program, scratch);
  const bool fine = s.kind == ENGINE_UINT8 ? encode_one<uint8_t>(program, s, at, work.rows)
                                           : encode_one<float>(program, s, at, work.rows);
  if (!fine) return false;
  if (program.code_64) {
    program.code_64(work.rows);
    read_results(program, s, at, 1, work);
    return true;
  }
  run_gates<Row64, I>(program, work.rows);
  const I* p = static_cast<const I*>(program.sums);
  const Run* runs = program.sum_runs;
  int32_t best = 0, label = 0;
  for (int32_t c = 0; c < program.class_count; c++) {
    Total total{0};
    p = add_class<Row64>(runs, program.classes[c], work.rows, p, total);
    runs += program.classes[c].runs;
    const int32_t score = (int32_t)((uint32_t)program.classes[c].bias + (uint32_t)total.ones);
    if (s.scores) s.scores[at * program.class_count + c] = score;
    if (c == 0 || score > best) best = score, label = c;
  }
  if (s.labels) s.labels[at] = label;
  return true;
}

static bool block(const Program& program, const Samples& s, int64_t first, int count, char* scratch) {
  if (count == 1)
    return program.wide_index ? run_one<uint32_t>(program, s, first, scratch)
                              : run_one<uint16_t>(program, s, first, scratch);
  if (count <= BLOCK_64)
    return program.wide_index ? run_block<Row64, uint32_t>(program, s, first, count, scratch)
                              : run_block<Row64, uint16_t>(program, s, first, count, scratch);
  return program.wide_index ? run_block<Row512, uint32_t>(program, s, first, count, scratch)
                            : run_block<Row512, uint16_t>(program, s, first, count, scratch);
}

template <class R>
static void run_bits(const Program& program, const Packed& packed, int64_t first, int count, char* scratch) {
  const Work<R> work(program, scratch);
  for (int64_t i = 0; i < program.inputs; i++) {
    uint64_t* row = work.rows + (int64_t)program.input_slot[i] * R::WORDS;
    for (int w = 0; w < R::WORDS; w++) row[w] = w < count ? packed.words[i * packed.count + first + w] : 0;
  }
  if (program.wide_index) run_gates<R, uint32_t>(program, work.rows);
  else run_gates<R, uint16_t>(program, work.rows);
  for (int64_t i = 0; i < program.outputs; i++) {
    const uint64_t* row = work.rows + (int64_t)program.output_slot[i] * R::WORDS;
    const uint64_t flip = program.output_negated[i] ? ~uint64_t(0) : 0;
    for (int w = 0; w < count; w++) packed.out[i * packed.count + first + w] = row[w] ^ flip;
  }
}

static void bits(const Program& program, const Packed& packed, int64_t first, int count, char* scratch) {
  if (count == 1) run_bits<Row64>(program, packed, first, count, scratch);
  else run_bits<Row512>(program, packed, first, count, scratch);
}

}  // namespace engine::GL_PATH

const Interpreter GL_PATH::interpreter = {engine::GL_PATH::MAX_ROW_ARITY, engine::GL_PATH::RUNS_CODE,
                                          engine::GL_PATH::block, engine::GL_PATH::bits};

}  // namespace gatelight
