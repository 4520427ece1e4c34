// The sizes that limits are about, as far as the shapes of a request tell them. Pure.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "triad/attend.h"
#include "triad/forward.h"

namespace triad::client {

inline constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max();

// The product of `sizes`, all >= 0; kTooMany when the product of those that are not 0 does not fit.
int64_t SaturatingProduct(absl::Span<const int64_t> sizes);

// Each kTooMany when it does not fit, and 0 when it is not known.
struct RequestSizes {
  int64_t batch = 0;
  int64_t tokens = 0;  // of queries and of keys, over all sequences
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t weights_bytes = 0;  // that are asked for
  int64_t reply_bytes = 0;    // of output, lse and weights together, at least
};

// All 0 when a tensor's rank is not that of the layout: the server's to refuse.
RequestSizes SizesOf(const AttendRequest& request);

// How many heads a layer has and how wide they are is not known here: lse and weights are counted for one head, and the
// output not at all.
RequestSizes SizesOf(const ForwardRequest& request);

}  // namespace triad::client
