#include "client/tools/bench/workload.h"

#include "absl/strings/str_cat.h"

namespace triad::tools {

absl::Status CheckWorkload(const Workload& workload) {
  const auto at_least_one = [](const char* flag, int64_t value) {
    return value >= 1 ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat(flag, " must be >= 1; was ", value));
  };
  if (absl::Status status = at_least_one("--batch", workload.batch); !status.ok()) return status;
  if (!(workload.keep > 0 && workload.keep <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("--keep must be > 0 and <= 1; was ", workload.keep));
  }
  if (workload.kind == Workload::Kind::kForward) return absl::OkStatus();
  if (absl::Status status = at_least_one("--heads", workload.heads); !status.ok()) return status;
  if (absl::Status status = at_least_one("--kv-heads", workload.kv_heads); !status.ok()) return status;
  if (absl::Status status = at_least_one("--head-dim", workload.qk_head_dim); !status.ok()) return status;
  if (absl::Status status = at_least_one("--v-head-dim", workload.v_head_dim); !status.ok()) return status;
  if (workload.heads % workload.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-heads must divide --heads; was ", workload.kv_heads, " of ", workload.heads));
  }
  return absl::OkStatus();
}

}  // namespace triad::tools
