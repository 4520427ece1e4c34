// The border at which foreign exceptions stop.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/batching/scheduled_task.h"
#include "core/batching/task.h"

namespace triad {

// Resets `scratch` and runs the item. An exception becomes a Status: std::bad_alloc RESOURCE_EXHAUSTED, any other
// INTERNAL.
absl::Status RunItemCatching(Task& task, int64_t item, Scratch& scratch);

// Moves `task` to its next stage that has any items, and returns them; none when it was in its last stage.
// RESOURCE_EXHAUSTED: no memory.
absl::StatusOr<std::vector<ScheduledItem>> NextStageOf(Task& task);

struct WholeRun {
  absl::Status status;
  bool is_late = false;  // stopped because the task's deadline passed
};

// Runs `items`, those of the task's stage, and all later stages on the calling thread.
WholeRun RunWhole(Task& task, std::vector<ScheduledItem> items, Clock& clock, Scratch& scratch);

}  // namespace triad
