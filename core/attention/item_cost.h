// What items take beside their products. Whoever shares out time needs it: a request of few dims, or of many short
// sequences, is mostly that.
#pragma once

#include <vector>

#include "core/attention/attention_kernel.h"

namespace triad {

// Sets the cost of `items` of `problem`, planned by a kernel of tiles or strips, from their flop.
void SetCosts(const AttentionProblem& problem, std::vector<WorkItem>& items);

}  // namespace triad
