// What a map from the parameters of gates to their tables is. All of them are in parametrize/maps.h.
#pragma once

#include <cstdint>

namespace gatelight {

constexpr int MAX_ARITY = 6;

struct Map {
  int32_t kind;                      // its number: one of GlKind
  int32_t max_arity;                 // the greatest arity that it takes
  int64_t (*parameters)(int arity);  // of a gate
  // theta [gates, parameters] -> table [gates, 2^arity].
  void (*forward)(int arity, const float* theta, int64_t gates, float* table);
  // The gradient of theta from that of the table.
  void (*backward)(int arity, const float* theta, const float* grad_table, int64_t gates, float* grad_theta);
};

}  // namespace gatelight
