#include "client/src/tensor_messages.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/src/check_request.h"
#include "triad/retry.h"

namespace triad::client {

void EncodeLengths(const std::vector<int64_t>& lengths, v1::Lengths& message) {
  message.mutable_values()->Assign(lengths.begin(), lengths.end());
}

absl::StatusOr<Tensor> DecodeTensor(absl::string_view field, v1::Tensor&& message) {
  Tensor tensor(static_cast<DataType>(message.dtype()), Shape(message.shape().begin(), message.shape().end()),
                std::move(*message.mutable_data()));
  const absl::Status status = CheckTensor(field, tensor.view());
  if (!status.ok()) return absl::InternalError(absl::StrCat("malformed answer: ", status.message()));
  return tensor;
}

Timings DecodeTimings(const v1::Timings& message) {
  return {.queue = absl::Nanoseconds(message.queue_ns()),
          .compute = absl::Nanoseconds(message.compute_ns()),
          .total = absl::Nanoseconds(message.total_ns()),
          .batch_requests = message.batch_requests(),
          .batch_tokens = message.batch_tokens()};
}

absl::Status DecodeError(const v1::StreamError& error) {
  const auto code = static_cast<absl::StatusCode>(error.code());
  if (code == absl::StatusCode::kOk) return absl::InternalError("malformed answer: an error with code OK");
  absl::Status status(code, error.message());
  if (error.has_retry_delay()) {
    SetRetryPushback(absl::Seconds(error.retry_delay().seconds()) + absl::Nanoseconds(error.retry_delay().nanos()),
                     status);
  }
  return status;
}

}  // namespace triad::client
