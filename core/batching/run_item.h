// The border at which foreign exceptions stop.
#pragma once

#include "absl/status/status.h"
#include "core/batching/task.h"

namespace triad {

// Resets `scratch` and runs the item. An exception becomes a Status: std::bad_alloc RESOURCE_EXHAUSTED, any other
// INTERNAL.
absl::Status RunItemCatching(Task& task, int64_t item, Scratch& scratch);

}  // namespace triad
