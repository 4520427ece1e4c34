#include "client/src/attend_messages.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/src/check_request.h"
#include "google/protobuf/io/coded_stream.h"

namespace triad::client {
namespace {

// Whether tensors travel with their bytes, or without them for measuring.
enum class Payload { kCopied, kLeftOut };

void EncodeTensor(const TensorView& view, Payload payload, v1::Tensor& message) {
  message.set_dtype(static_cast<v1::DataType>(view.dtype));
  message.mutable_shape()->Assign(view.shape.begin(), view.shape.end());
  if (payload == Payload::kLeftOut) return;
  message.set_data(view.data.data(), view.data.size());
}

void EncodeLengths(const std::vector<int64_t>& lengths, v1::Lengths& message) {
  message.mutable_values()->Assign(lengths.begin(), lengths.end());
}

void Encode(const AttendRequest& request, Payload payload, v1::AttendRequest& message) {
  EncodeTensor(request.query, payload, *message.mutable_query());
  EncodeTensor(request.key, payload, *message.mutable_key());
  EncodeTensor(request.value, payload, *message.mutable_value());
  message.set_layout(static_cast<v1::Layout>(request.layout));

  if (request.scale) message.set_scale(*request.scale);
  message.set_logit_softcap(request.logit_softcap);
  message.set_causal(request.causal);
  message.set_alignment(static_cast<v1::Alignment>(request.alignment));
  if (request.window) {
    v1::Window& window = *message.mutable_window();
    if (request.window->left) window.set_left(*request.window->left);
    if (request.window->right) window.set_right(*request.window->right);
  }
  message.mutable_alibi_slopes()->Assign(request.alibi_slopes.begin(), request.alibi_slopes.end());
  message.set_alibi(request.alibi);
  message.mutable_sinks()->Assign(request.sinks.begin(), request.sinks.end());

  if (request.keep) EncodeTensor(*request.keep, payload, *message.mutable_keep());
  if (request.bias) EncodeTensor(*request.bias, payload, *message.mutable_bias());
  if (request.query_lengths) EncodeLengths(*request.query_lengths, *message.mutable_query_lengths());
  if (request.key_lengths) EncodeLengths(*request.key_lengths, *message.mutable_key_lengths());

  message.set_return_lse(request.return_lse);
  message.set_return_weights(request.return_weights);
  message.set_kernel(static_cast<v1::Kernel>(request.kernel));
  message.set_priority(static_cast<v1::Priority>(request.priority));
}

int64_t VarintBytes(int64_t value) {
  return static_cast<int64_t>(google::protobuf::io::CodedOutputStream::VarintSize64(static_cast<uint64_t>(value)));
}

// What a field holding `header`, a tensor without its bytes, grows by when it gets `data_bytes` of them.
int64_t PayloadGrowth(const v1::Tensor& header, int64_t data_bytes) {
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

// The tensor of an optional field, when there is one.
absl::Status DecodeOptional(absl::string_view field, bool present, v1::Tensor&& message,
                            std::optional<Tensor>& tensor) {
  if (!present) return absl::OkStatus();
  absl::StatusOr<Tensor> decoded = DecodeTensor(field, std::move(message));
  if (!decoded.ok()) return decoded.status();
  tensor = *std::move(decoded);
  return absl::OkStatus();
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

}  // namespace

void EncodeAttend(const AttendRequest& request, v1::AttendRequest& message) {
  Encode(request, Payload::kCopied, message);
}

int64_t EncodedBytes(const AttendRequest& request) {
  v1::AttendRequest message;
  Encode(request, Payload::kLeftOut, message);
  int64_t bytes = static_cast<int64_t>(message.ByteSizeLong());
  const auto add = [&bytes](const v1::Tensor& header, const TensorView& view) {
    bytes += PayloadGrowth(header, static_cast<int64_t>(view.data.size()));
  };
  add(message.query(), request.query);
  add(message.key(), request.key);
  add(message.value(), request.value);
  if (request.keep) add(message.keep(), *request.keep);
  if (request.bias) add(message.bias(), *request.bias);
  return bytes;
}

absl::StatusOr<AttendResponse> DecodeAttend(v1::AttendResponse&& message) {
  absl::StatusOr<Tensor> output = DecodeTensor("output", std::move(*message.mutable_output()));
  if (!output.ok()) return output.status();
  AttendResponse response;
  response.output = *std::move(output);
  const bool has_lse = message.has_lse();
  absl::Status status = DecodeOptional("lse", has_lse, std::move(*message.mutable_lse()), response.lse);
  if (!status.ok()) return status;
  const bool has_weights = message.has_weights();
  status = DecodeOptional("weights", has_weights, std::move(*message.mutable_weights()), response.weights);
  if (!status.ok()) return status;
  response.timings = {.queue = absl::Nanoseconds(message.timings().queue_ns()),
                      .compute = absl::Nanoseconds(message.timings().compute_ns()),
                      .total = absl::Nanoseconds(message.timings().total_ns())};
  return response;
}

AttendAnswer DecodeAnswer(v1::AttendStreamResponse&& message) {
  const uint64_t id = message.request_id();
  switch (message.result_case()) {
    case v1::AttendStreamResponse::kResponse:
      return {id, DecodeAttend(std::move(*message.mutable_response()))};
    case v1::AttendStreamResponse::kError:
      return {id, DecodeError(message.error())};
    case v1::AttendStreamResponse::RESULT_NOT_SET:
      break;
  }
  return {id, absl::InternalError("malformed answer: neither response nor error")};
}

ServerInfo DecodeServerInfo(const v1::ServerInfo& message) {
  const v1::ServerInfo::Limits& limits = message.limits();
  return {.version = message.version(),
          .instruction_set = message.instruction_set(),
          .kernel = message.kernel(),
          .onednn_version = message.onednn_version(),
          .threads = message.threads(),
          .limits = {.max_message_bytes = limits.max_message_bytes(),
                     .max_tokens_per_request = limits.max_tokens_per_request(),
                     .max_head_dim = limits.max_head_dim(),
                     .max_weights_bytes = limits.max_weights_bytes(),
                     .max_in_flight_bytes = limits.max_in_flight_bytes(),
                     .max_queue_time = absl::Nanoseconds(limits.max_queue_time_ns()),
                     .max_streams = limits.max_streams(),
                     .max_stream_items = limits.max_stream_items(),
                     .max_reference_work = limits.max_reference_work(),
                     .max_batch = limits.max_batch()}};
}

}  // namespace triad::client
