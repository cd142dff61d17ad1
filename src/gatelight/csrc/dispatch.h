// Which SIMD path runs.
#pragma once

#include "kernels.h"

namespace gatelight {

// The best path of this processor, or the one chosen by select() or the environment variable GATELIGHT_SIMD.
const Kernels& kernels();
bool select(const char* name);
const char* available();

}  // namespace gatelight
