// From planned requests to requests of the client library, without making a payload for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/tools/bench/workload.h"
#include "triad/attend.h"
#include "triad/forward.h"

namespace triad::tools {

// That a message holds each tensor of requests like `longest`. INVALID_ARGUMENT names the first that is larger. What a
// server accepts is checked by the client library.
absl::Status CheckRequestSizes(const Workload& workload, const PlannedRequest& longest);

// All tensors are windows into one array of random numbers, at places that a request's seed decides: equal plans have
// equal bytes, on every machine, and memory is that of the largest tensor whatever the number of requests and shapes.
//
// Immutable once made, so that threads may share it.
class RequestBuilder {
 public:
  // For requests of at most `longest` tokens and keys (its seed is not looked at). Errors are CheckRequestSizes'.
  static absl::StatusOr<RequestBuilder> Create(const Workload& workload, const PlannedRequest& longest);

  const Workload& workload() const { return workload_; }

  // For plans no longer than `longest`, of the workload's kind. The views share memory with this.
  client::AttendRequest Attend(const PlannedRequest& plan) const;
  client::ForwardRequest Forward(const PlannedRequest& plan) const;

 private:
  explicit RequestBuilder(const Workload& workload) : workload_(workload) {}

  client::TensorView Numbers(uint64_t seed, uint64_t role, client::Shape shape) const;
  std::optional<client::TensorView> Keep(const PlannedRequest& plan) const;

  const Workload workload_;
  // Owned by requests too, which are sent from where they lie.
  using Array = std::shared_ptr<const std::vector<std::byte>>;
  Array numbers_;  // normal deviates of workload_.dtype, repeating with period kPeriod
  Array keep_;     // bytes 0 and 1, repeating likewise; null: no mask
};

}  // namespace triad::tools
