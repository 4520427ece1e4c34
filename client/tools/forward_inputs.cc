#include "client/tools/forward_inputs.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "client/tools/tensor_inputs.h"

namespace triad::tools {

absl::StatusOr<ForwardInputs> ForwardInputs::Load(const ForwardFlags& flags) {
  ForwardInputs inputs(flags);
  client::ForwardRequest& request = inputs.request_;
  TensorInputs tensors(flags.dtype);
  const bool is_collection = absl::EndsWith(flags.input, ".safetensors");
  absl::Status status;
  if (is_collection) status = tensors.OpenCollection(flags.input, {"input", "context", "keep", "bias"});
  if (status.ok()) status = tensors.Fill("input", is_collection ? "" : flags.input, request.input);
  if (status.ok()) status = tensors.FillFloats("context", flags.context, request.context);
  if (status.ok()) status = tensors.FillOptional("keep", flags.keep, request.keep);
  if (status.ok()) status = tensors.FillOptional("bias", flags.bias, request.bias);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace triad::tools
