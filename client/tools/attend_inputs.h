// What `triad attend` sends: files as a request.
#pragma once

#include "absl/status/statusor.h"
#include "client/tools/attend_flags.h"
#include "triad/attend.h"

namespace triad::tools {

// A request, which shares the memory it was read into.
class AttendInputs {
 public:
  // Reads the files that `flags` name. Errors as TensorInputs'.
  static absl::StatusOr<AttendInputs> Load(const AttendFlags& flags);

  const client::AttendRequest& request() const { return request_; }

 private:
  explicit AttendInputs(const AttendFlags& flags) : request_(flags.request) {
    request_.return_lse = flags.answer.wants_lse();
    request_.return_weights = flags.answer.wants_weights();
  }

  client::AttendRequest request_;
};

}  // namespace triad::tools
