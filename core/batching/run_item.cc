#include "core/batching/run_item.h"

#include <exception>
#include <new>

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

}  // namespace triad
