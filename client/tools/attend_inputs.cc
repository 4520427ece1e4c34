#include "client/tools/attend_inputs.h"

#include <utility>

#include "absl/status/status.h"
#include "client/tools/tensor_inputs.h"

namespace triad::tools {
namespace {

// Here and not beside the flags: a collection may bring the slopes.
absl::Status CheckAlignment(const client::AttendRequest& request) {
  const bool matters = request.causal || request.window || request.alibi || !request.alibi_slopes.empty();
  if (matters || request.alignment == client::Alignment::kUnspecified) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--alignment needs --causal, --window-left, --window-right, --alibi or slopes for it: without them it does not "
      "matter where queries stand");
}

}  // namespace

absl::StatusOr<AttendInputs> AttendInputs::Load(const AttendFlags& flags) {
  AttendInputs inputs(flags);
  client::AttendRequest& request = inputs.request_;
  TensorInputs tensors(flags.dtype);
  absl::Status status;
  if (!flags.input.empty()) {
    status = tensors.OpenCollection(flags.input, {"query", "key", "value", "keep", "bias", "alibi_slopes", "sinks"});
  }
  if (status.ok()) status = tensors.Fill("query", flags.query, request.query);
  if (status.ok()) status = tensors.Fill("key", flags.key, request.key);
  if (status.ok()) status = tensors.Fill("value", flags.value, request.value);
  if (status.ok()) status = tensors.FillOptional("keep", flags.keep, request.keep);
  if (status.ok()) status = tensors.FillOptional("bias", flags.bias, request.bias);
  if (status.ok()) status = tensors.FillList("alibi_slopes", request.alibi_slopes);
  if (status.ok()) status = tensors.FillList("sinks", request.sinks);
  if (status.ok()) status = CheckAlignment(request);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace triad::tools
