// Merging of gates into their readers.
#pragma once

#include "engine/lower/gate_list.h"

namespace gatelight {

// Gates with one reader, which can take over their inputs without having more than three, are computed there. To do
// the same with two or three readers writes fewer rows but reads as many more: no faster.
void merge(GateList& net);

}  // namespace gatelight
