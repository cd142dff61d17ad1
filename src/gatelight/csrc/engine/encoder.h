// The encoder: which input bits are made together.
#pragma once

#include <vector>

#include "engine/program.h"
#include "gatelight_engine.h"

namespace gatelight {

void plan_encoder(const GlCircuit& circuit, const std::vector<int32_t>& slot, std::vector<Encode>& words);

}  // namespace gatelight
