// The encoder: which input bits are made together.
#pragma once

#include <vector>

#include "engine.h"
#include "engine_circuit.h"

namespace gatelight {

void plan_encoder(const GlCircuit& circuit, const std::vector<int32_t>& slot, std::vector<Encode>& words);

}  // namespace gatelight
