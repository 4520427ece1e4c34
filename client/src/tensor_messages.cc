#include "client/src/tensor_messages.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/src/check_request.h"
#include "google/protobuf/io/coded_stream.h"
#include "triad/retry.h"

namespace triad::client {
namespace {

int64_t VarintBytes(int64_t value) {
  return static_cast<int64_t>(google::protobuf::io::CodedOutputStream::VarintSize64(static_cast<uint64_t>(value)));
}

}  // namespace

void EncodeTensor(const TensorView& view, Payload payload, v1::Tensor& message) {
  message.set_dtype(static_cast<v1::DataType>(view.dtype));
  message.mutable_shape()->Assign(view.shape.begin(), view.shape.end());
  if (payload == Payload::kLeftOut) return;
  message.set_data(view.data.data(), view.data.size());
}

void EncodeLengths(const std::vector<int64_t>& lengths, v1::Lengths& message) {
  message.mutable_values()->Assign(lengths.begin(), lengths.end());
}

int64_t PayloadGrowth(const v1::Tensor& header, const TensorView& view) {
  const auto data_bytes = static_cast<int64_t>(view.data.size());
  if (data_bytes == 0) return 0;
  constexpr int64_t kTagBytes = 1;  // field 3 of Tensor
  const int64_t without = static_cast<int64_t>(header.ByteSizeLong());
  const int64_t with = without + kTagBytes + VarintBytes(data_bytes) + data_bytes;
  return with - without + VarintBytes(with) - VarintBytes(without);
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
