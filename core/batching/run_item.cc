#include "core/batching/run_item.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace triad {

absl::Status RunItemCatching(Task& task, int64_t item, Scratch& scratch) {
  try {
    scratch.Reset();
    return task.RunItem(item, scratch);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the scratch of work item ", item));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("work item ", item, " threw: ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("work item ", item, " threw what is no std::exception"));
  }
}

absl::StatusOr<std::vector<ScheduledItem>> NextStageOf(Task& task) {
  try {
    while (task.NextStage()) {
      std::vector<ScheduledItem> items = LongestFirst(task);
      if (!items.empty()) return items;
    }
    return std::vector<ScheduledItem>();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory to schedule the request's next stage");
  }
}

WholeRun RunWhole(Task& task, std::vector<ScheduledItem> items, Clock& clock, Scratch& scratch) {
  while (!items.empty()) {
    for (const ScheduledItem& item : items) {
      if (task.deadline() <= clock.Now()) return {.status = absl::OkStatus(), .is_late = true};
      absl::Status status = RunItemCatching(task, item.item, scratch);
      if (!status.ok()) return {.status = std::move(status)};
    }
    absl::StatusOr<std::vector<ScheduledItem>> next = NextStageOf(task);
    if (!next.ok()) return {.status = next.status()};
    items = *std::move(next);
  }
  return {};
}

}  // namespace triad
