// The rules of score_modifiers.h for a strip, whose rows stand in lanes: same order, same bytes. Highway.
#pragma once

#include <cstdint>

#include "core/attention/lane_softmax.h"
#include "core/attention/score_modifiers.h"

namespace triad {

// Modifies the strip's scores [keys, width] against the keys from `first_key` on. rows [width]: of each lane, from key
// 0 on; all have the same rules, and differ in slope, distance and where their bias and keep lie.
void ModifyStrip(const RowModifiers* rows, int64_t first_key, const ScoreStrip& strip);

}  // namespace triad
