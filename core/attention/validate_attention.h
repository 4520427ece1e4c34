// The rules of an attention request, and its translation into a problem that kernels can trust.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/attention/attention_problem.h"
#include "core/attention/attention_request.h"

namespace triad {

// Checks every rule of proto/triad/v1/attention.proto: ranks, shapes, types, byte counts are the caller's (a TensorView
// has data for its shape); lengths, alignment, window, caps, slopes, sinks, limits; sizes are checked before they are
// multiplied. The problem borrows the request's tensors. INVALID_ARGUMENT names field, rule and value (and the flag,
// for a limit). Cost: O(batch), independent of tokens. Never blocks.
absl::StatusOr<AttentionProblem> ValidateAttention(const AttentionRequest& request, const AttentionLimits& limits);

// The rule of a list with one entry for each head, or none: entries are finite or, where there may be none of what they
// say, -inf. INVALID_ARGUMENT names `field`. A hosted layer's lists follow it too.
absl::Status CheckPerHead(absl::string_view field, absl::Span<const float> values, int64_t heads, bool may_be_none);

// Slope of each head by the rule of Press et al. 2022 (arXiv:2108.12409): for a power of two n, 2^(-8 (h + 1) / n);
// otherwise those of the next lower power, then every second one of the next higher. heads >= 1.
std::vector<float> StandardAlibiSlopes(int64_t heads);

}  // namespace triad
