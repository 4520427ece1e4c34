// What `triad forward` sends: files as a request.
#pragma once

#include "absl/status/statusor.h"
#include "client/tools/forward_flags.h"
#include "triad/forward.h"

namespace triad::tools {

// A request, which shares the memory it was read into.
class ForwardInputs {
 public:
  // Reads the files that `flags` name. Errors as TensorInputs'.
  static absl::StatusOr<ForwardInputs> Load(const ForwardFlags& flags);

  const client::ForwardRequest& request() const { return request_; }

 private:
  explicit ForwardInputs(const ForwardFlags& flags) : request_(flags.request) {
    request_.return_lse = flags.answer.wants_lse();
    request_.return_weights = flags.answer.wants_weights();
  }

  client::ForwardRequest request_;
};

}  // namespace triad::tools
