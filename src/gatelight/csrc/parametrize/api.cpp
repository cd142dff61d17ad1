// The exported functions for tables: checks, and chunks of gates for the threads.
#include <algorithm>
#include <new>

#include "gatelight.h"
#include "parametrize/chunks.h"

using namespace gatelight;

namespace {

// work(first gate, gates) for every run of CHUNK gates.
template <class F>
void for_gates(int64_t gates, F work) {
  parallel((gates + CHUNK - 1) / CHUNK,
           [&](int64_t i, int) { work(i * CHUNK, std::min(CHUNK, gates - i * CHUNK)); });
}

}  // namespace

int32_t gl_table_fwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, float* table) try {
  const Map* map = find_map(kind, arity);
  if (!map || gates < 1) return GL_BAD_ARGUMENT;
  const int64_t p = map->parameters(arity);
  for_gates(gates, [&](int64_t j, int64_t n) { map->forward(arity, theta + j * p, n, table + (j << arity)); });
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_table_bwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, const float* grad_table,
                     float* grad_theta) try {
  const Map* map = find_map(kind, arity);
  if (!map || gates < 1) return GL_BAD_ARGUMENT;
  const int64_t p = map->parameters(arity);
  for_gates(gates, [&](int64_t j, int64_t n) {
    map->backward(arity, theta + j * p, grad_table + (j << arity), n, grad_theta + j * p);
  });
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}
