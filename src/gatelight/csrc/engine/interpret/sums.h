// Sums of bits, bit-sliced: a full adder takes three bits of one weight to one of that weight and one of the next.
//
// Eight bits are added at a time to planes of weight 1, 2 and 4; the carry of weight 8 goes to a list, from which it is
// added to the planes of weight 8, 16 and 32 in the same way, and so on.
#pragma once

#include "engine/interpret/gates.h"

namespace gatelight {
namespace engine::GL_PATH {

template <class R>
struct Counter {
  R plane[3 * STAGES];
  R list[STAGES][LIST];
  int waiting[STAGES];
};

// Adds eight bits to three planes and returns the carry.
template <class R>
GL_INLINE R add_eight(const R* v, R& ones, R& twos, R& fours) {
  R a, b, c, d, carry;
  ones = full_add(ones, v[0], v[1], a);
  ones = full_add(ones, v[2], v[3], b);
  twos = full_add(twos, a, b, c);
  ones = full_add(ones, v[4], v[5], a);
  ones = full_add(ones, v[6], v[7], b);
  twos = full_add(twos, a, b, d);
  fours = full_add(fours, c, d, carry);
  return carry;
}

template <class R>
void add_waiting(Counter<R>& counter, int stage);

template <class R>
GL_INLINE void push(Counter<R>& counter, int stage, const R& carry) {
  counter.list[stage][counter.waiting[stage]++] = carry;
  if (counter.waiting[stage] == LIST) add_waiting(counter, stage);
}

// Takes the carries that left `stage` into the planes of the next one.
template <class R>
__attribute__((noinline)) void add_waiting(Counter<R>& counter, int stage) {
  R* plane = counter.plane + 3 * (stage + 1);
  R *list = counter.list[stage], ones = plane[0], twos = plane[1], fours = plane[2];
  while (counter.waiting[stage] % GROUP) list[counter.waiting[stage]++] = R::zeros();
  for (int i = 0; i < counter.waiting[stage]; i += GROUP) {
    const R carry = add_eight(list + i, ones, twos, fours);
    if (stage + 1 < STAGES) push(counter, stage + 1, carry);
  }
  counter.waiting[stage] = 0;
  plane[0] = ones;
  plane[1] = twos;
  plane[2] = fours;
}

// The first three planes, in registers while a run is added.
template <class R>
class AddToCounter {
 public:
  explicit GL_INLINE AddToCounter(Counter<R>& counter)
      : counter_(counter), ones_(counter.plane[0]), twos_(counter.plane[1]), fours_(counter.plane[2]) {}
  GL_INLINE void add(const R* v) { push(counter_, 0, add_eight(v, ones_, twos_, fours_)); }
  GL_INLINE void finish() {
    counter_.plane[0] = ones_;
    counter_.plane[1] = twos_;
    counter_.plane[2] = fours_;
  }

 private:
  Counter<R>& counter_;
  R ones_, twos_, fours_;
};
template <class R>
GL_INLINE AddToCounter<R> adder(Counter<R>& counter) {
  return AddToCounter<R>(counter);
}

// The count of one sample, whose rows are all ones, which is -1, or all zeros.
struct Total {
  uint64_t ones;
};
class AddToTotal {
 public:
  explicit GL_INLINE AddToTotal(Total& total) : total_(total), ones_(total.ones) {}
  GL_INLINE void add(const Row64* v) {
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) ones_ -= v[i].v[0];
  }
  GL_INLINE void finish() { total_.ones = ones_; }

 private:
  Total& total_;
  uint64_t ones_;
};
GL_INLINE AddToTotal adder(Total& total) { return AddToTotal(total); }

// Adds `count` groups to a Counter or a Total and returns where the next run's indices start.
template <class I, class C>
using SumLoop = const I* (*)(const uint64_t* rows, const I* p, int64_t count, C& counter);

template <int ARITY, int TABLE, class R, class I, class C>
const I* sum_loop(const uint64_t* rows, const I* p, int64_t count, C& counter) {
  auto sum = adder(counter);
  for (int64_t g = 0; g < count; g++, p += GROUP * ARITY) {
    R v[GROUP];
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) {
      R in[ARITY];
#pragma GCC unroll 3
      for (int k = 0; k < ARITY; k++) in[k] = R::load(rows, p[i * ARITY + k]);
      v[i] = lut<ARITY, TABLE>(in);
    }
    sum.add(v);
  }
  sum.finish();
  return p;
}

template <int TABLE, class R, class I, class C>
constexpr SumLoop<I, C> sum_loop_of(int arity) {
  if constexpr (TABLE == 1 || TABLE == 2)
    if (arity == 1) return sum_loop<1, TABLE, R, I, C>;
  if constexpr (TABLE < 16 && is_ordered(2, TABLE & 15))
    if (arity == 2) return sum_loop<2, TABLE, R, I, C>;
  if constexpr (MAX_ROW_ARITY == 3 && is_ordered(3, TABLE))
    if (arity == 3) return sum_loop<3, TABLE, R, I, C>;
  return nullptr;
}

template <class I, class C>
struct SumLoops {
  SumLoop<I, C> of[3][256];
};

template <class R, class I, class C, int... T>
constexpr SumLoops<I, C> make_sum_loops(Tables<T...>) {
  return {{{sum_loop_of<T, R, I, C>(1)...}, {sum_loop_of<T, R, I, C>(2)...}, {sum_loop_of<T, R, I, C>(3)...}}};
}

// Adds the bits of one class; returns where the next class's indices start.
template <class R, class I, class C>
GL_INLINE const I* add_class(const Run* runs, const Sum& sum, const uint64_t* rows, const I* p, C& counter) {
  static constexpr SumLoops<I, C> loops = make_sum_loops<R, I, C>(typename MakeTables<256>::type());
  for (const Run* run = runs; run < runs + sum.runs; run++)
    p = loops.of[run->arity - 1][run->table](rows, p, run->count, counter);
  return p;
}

// Stages of planes that hold counts of up to `most`.
GL_INLINE int stages_for(int32_t most) {
  int stages = 1;
  while (most >> (3 * stages) > 0 && stages < STAGES) stages++;
  return stages;
}

// Counts one class into the planes of the counter.
template <class R, class I>
GL_INLINE const I* count_class(const Run* runs, const Sum& sum, const uint64_t* rows, const I* p, Counter<R>& counter) {
  const int stages = stages_for(sum.bits);
  for (int i = 0; i < 3 * stages; i++) counter.plane[i] = R::zeros();
  for (int i = 0; i < STAGES; i++) counter.waiting[i] = 0;
  p = add_class<R>(runs, sum, rows, p, counter);
  for (int i = 0; i + 1 < stages; i++) add_waiting(counter, i);
  return p;
}

}  // namespace engine::GL_PATH
}  // namespace gatelight
