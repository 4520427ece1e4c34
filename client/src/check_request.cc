#include "client/src/check_request.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace triad::client {
namespace {

constexpr absl::string_view kRequestBytes = "bytes of the request";
constexpr absl::string_view kReplyBytes = "bytes of output, lse and weights";

absl::Status Refuse(absl::string_view what, absl::string_view rule, const absl::AlphaNum& was) {
  return absl::InvalidArgumentError(absl::StrCat(what, " must ", rule, "; was ", was));
}

std::string ToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// `whose` is the limit's name and owner.
absl::Status CheckAtMost(absl::string_view what, int64_t value, int64_t limit, absl::string_view whose) {
  if (value <= limit) return absl::OkStatus();
  return Refuse(what, absl::StrCat("be at most ", limit, ", ", whose),
                value == kTooMany ? "more than 2^63" : absl::StrCat(value));
}

// CheckTensor of a field that may be unset.
absl::Status CheckOptional(absl::string_view field, const std::optional<TensorView>& tensor) {
  return tensor ? CheckTensor(field, *tensor) : absl::OkStatus();
}

}  // namespace

absl::Status CheckTensor(absl::string_view field, const TensorView& tensor) {
  const int64_t element_bytes = ByteSize(tensor.dtype);
  if (element_bytes == 0) {
    return Refuse(absl::StrCat(field, ".dtype"), "be FLOAT32, BFLOAT16, FLOAT16 or BOOL",
                  static_cast<int>(tensor.dtype));
  }
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] < 0) return Refuse(absl::StrCat(field, ".shape[", axis, "]"), "be >= 0", tensor.shape[axis]);
  }
  Shape factors = tensor.shape;
  factors.push_back(element_bytes);
  const int64_t bytes = SaturatingProduct(factors);
  if (bytes == kTooMany) {
    return Refuse(absl::StrCat(field, ".shape"), "describe fewer than 2^63 bytes", ToString(tensor.shape));
  }
  if (static_cast<int64_t>(tensor.data.size()) != bytes) {
    return Refuse(absl::StrCat(field, ".data"),
                  absl::StrCat("have the ", bytes, " bytes of ", Name(tensor.dtype), " ", ToString(tensor.shape)),
                  tensor.data.size());
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const AttendRequest& request) {
  absl::Status status = CheckTensor("query", request.query);
  if (status.ok()) status = CheckTensor("key", request.key);
  if (status.ok()) status = CheckTensor("value", request.value);
  if (status.ok()) status = CheckOptional("keep", request.keep);
  if (status.ok()) status = CheckOptional("bias", request.bias);
  return status;
}

absl::Status CheckTensors(const ForwardRequest& request) {
  absl::Status status = CheckTensor("input", request.input);
  if (status.ok()) status = CheckOptional("context", request.context);
  if (status.ok()) status = CheckOptional("keep", request.keep);
  if (status.ok()) status = CheckOptional("bias", request.bias);
  return status;
}

absl::Status CheckOwnLimit(int64_t bytes, const RequestSizes& sizes, int64_t max_message_bytes) {
  constexpr absl::string_view kWhose = "max_message_bytes of this client";
  absl::Status status = CheckAtMost(kRequestBytes, bytes, max_message_bytes, kWhose);
  if (status.ok()) status = CheckAtMost(kReplyBytes, sizes.reply_bytes, max_message_bytes, kWhose);
  return status;
}

absl::Status CheckServerLimits(const RequestSizes& sizes, int64_t bytes, const Limits& limits,
                               const std::string& target) {
  struct Rule {
    absl::string_view what;
    int64_t value;
    absl::string_view flag;
    int64_t limit;
  };
  const Rule rules[] = {
      {kRequestBytes, bytes, "max_message_bytes", limits.max_message_bytes},
      {"batch of the request", sizes.batch, "max_batch", limits.max_batch},
      {"qk_head_dim", sizes.qk_head_dim, "max_head_dim", limits.max_head_dim},
      {"v_head_dim", sizes.v_head_dim, "max_head_dim", limits.max_head_dim},
      {"query and key tokens of all sequences", sizes.tokens, "max_tokens_per_request", limits.max_tokens_per_request},
      {"bytes of the weights", sizes.weights_bytes, "max_weights_bytes", limits.max_weights_bytes},
      {kReplyBytes, sizes.reply_bytes, "max_message_bytes", limits.max_message_bytes},
  };
  for (const Rule& rule : rules) {
    if (rule.limit <= 0) continue;
    absl::Status status =
        CheckAtMost(rule.what, rule.value, rule.limit, absl::StrCat("--", rule.flag, " of the server at ", target));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace triad::client
