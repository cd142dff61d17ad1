// From bit-sliced counts to numbers and labels.
#pragma once

#include "engine/interpret/encode.h"
#include "engine/interpret/sums.h"

namespace gatelight {
namespace engine::GL_PATH {

constexpr int NUMBERS = GL_BYTES / 4;
typedef int32_t vn __attribute__((vector_size(GL_BYTES)));
typedef int32_t vn_memory __attribute__((vector_size(GL_BYTES), may_alias));

// Where the number of a sample is: transposed 8 x 8 bits leave every eighth sample side by side.
template <class R>
GL_INLINE int place(int sample) {
  return (sample & 7) * (R::SAMPLES / 8) + (sample >> 3);
}

// bias + the counts in the planes, as int32 [R::SAMPLES]. Eight planes become the bytes of eight rows at a time.
template <class R>
GL_INLINE void to_numbers(const R* plane, const Sum& sum, int32_t* numbers) {
  const int planes = planes_for(sum.bits);
  for (int first = 0; first < planes; first += 8) {
    R v[8];
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++) v[p] = first + p < planes ? plane[first + p] : R::zeros();
    swap_eight<1>(v);
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(v);
    if (first == 0)
      for (int i = 0; i < R::SAMPLES; i++) numbers[i] = (int32_t)((uint32_t)sum.bias + bytes[i]);
    else
      for (int i = 0; i < R::SAMPLES; i++) numbers[i] = (int32_t)((uint32_t)numbers[i] + ((uint32_t)bytes[i] << first));
  }
}

// Class c becomes a sample's label if its score is higher: of equals the first stays.
GL_INLINE void challenge(const int32_t* numbers, int32_t c, int samples, int32_t* best, int32_t* label) {
  for (int i = 0; i < samples; i += NUMBERS) {
    const vn number = *reinterpret_cast<const vn_memory*>(numbers + i);
    vn& top = *reinterpret_cast<vn_memory*>(best + i);
    vn& winner = *reinterpret_cast<vn_memory*>(label + i);
    const vn more = number > top;
    winner = (more & (vn{} + c)) | (~more & winner);
    top = (more & number) | (~more & top);
  }
}

}  // namespace engine::GL_PATH
}  // namespace gatelight
