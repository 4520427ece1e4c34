// The rules of an attention request, and its translation into a problem that kernels can trust.
#pragma once

#include "absl/status/statusor.h"
#include "core/attention/attention_problem.h"
#include "core/attention/attention_request.h"

namespace triad {

// Checks every rule of proto/triad/v1/attention.proto: ranks, shapes, types, byte counts are the caller's (a TensorView
// has data for its shape); lengths, alignment, window, caps, slopes, sinks, limits; sizes are checked before they are
// multiplied. The problem borrows the request's tensors. INVALID_ARGUMENT names field, rule and value (and the flag,
// for a limit). Cost: O(batch), independent of tokens. Never blocks.
absl::StatusOr<AttentionProblem> ValidateAttention(const AttentionRequest& request, const AttentionLimits& limits);

// Slope of each head by the rule of Press et al. 2022 (arXiv:2108.12409): for a power of two n, 2^(-8 (h + 1) / n);
// otherwise those of the next lower power, then every second one of the next higher. heads >= 1.
std::vector<float> StandardAlibiSlopes(int64_t heads);

}  // namespace triad
