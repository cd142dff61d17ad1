// Merging of gates into their readers.
#pragma once

#include "engine_lower.h"

namespace gatelight {

// Removes gates that no output needs.
void drop_unread(Netlist& net);

// Gates with one reader, which can take over their inputs without having more than three, are computed there. To do
// the same with two or three readers writes fewer rows but reads as many more: no faster.
void merge(Netlist& net);

}  // namespace gatelight
