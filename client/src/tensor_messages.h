// What the messages of Attend and Forward have in common: lengths, answers, errors of a stream's items.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "triad/attend.h"
#include "triad/tensor.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {

void EncodeLengths(const std::vector<int64_t>& lengths, v1::Lengths& message);

// Moves the bytes out of `message`. INTERNAL, naming `field`: they are not those of its shape.
absl::StatusOr<Tensor> DecodeTensor(absl::string_view field, v1::Tensor&& message);

Timings DecodeTimings(const v1::Timings& message);

// The error of an item. INTERNAL when its code is OK.
absl::Status DecodeError(const v1::StreamError& error);

// Moves output, lse and weights out of `message`, an answer of either kind, and copies the timings.
template <class Message, class Response>
absl::Status DecodeOutputs(Message& message, Response& response) {
  absl::StatusOr<Tensor> output = DecodeTensor("output", std::move(*message.mutable_output()));
  if (!output.ok()) return output.status();
  response.output = *std::move(output);
  if (message.has_lse()) {
    absl::StatusOr<Tensor> lse = DecodeTensor("lse", std::move(*message.mutable_lse()));
    if (!lse.ok()) return lse.status();
    response.lse = *std::move(lse);
  }
  if (message.has_weights()) {
    absl::StatusOr<Tensor> weights = DecodeTensor("weights", std::move(*message.mutable_weights()));
    if (!weights.ok()) return weights.status();
    response.weights = *std::move(weights);
  }
  response.timings = DecodeTimings(message.timings());
  return absl::OkStatus();
}

}  // namespace triad::client
