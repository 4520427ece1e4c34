#include "client/src/check_request.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace triad::client {
namespace {

// The product of `sizes`, all >= 0; nullopt when it does not fit, even if a size is 0.
std::optional<int64_t> Product(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  bool zero = false;
  for (const int64_t size : sizes) {
    if (size == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : product;
}

absl::Status Refuse(absl::string_view what, absl::string_view rule, const absl::AlphaNum& was) {
  return absl::InvalidArgumentError(absl::StrCat(what, " must ", rule, "; was ", was));
}

std::string ToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// The sizes that limits are about.
struct Sizes {
  int64_t batch = 1;  // 1 in kPacked, whose tokens are totals
  int64_t heads = 0;
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t key_columns = 0;  // last dimension of weights
};

// nullopt when a rank is not that of the layout.
std::optional<Sizes> ReadSizes(const AttendRequest& request) {
  const bool packed = request.layout == Layout::kPacked;
  const size_t rank = packed ? 3 : 4;
  for (const TensorView* tensor : {&request.query, &request.key, &request.value}) {
    if (tensor->shape.size() != rank) return std::nullopt;
  }
  const size_t heads_axis = request.layout == Layout::kHeadsTokens ? 1 : rank - 2;
  const size_t tokens_axis = request.layout == Layout::kHeadsTokens ? 2 : rank - 3;
  Sizes sizes{.batch = packed ? 1 : request.query.shape[0],
              .heads = request.query.shape[heads_axis],
              .q_len = request.query.shape[tokens_axis],
              .kv_len = request.key.shape[tokens_axis],
              .qk_head_dim = request.query.shape[rank - 1],
              .v_head_dim = request.value.shape[rank - 1]};
  sizes.key_columns = sizes.kv_len;
  if (packed && request.key_lengths) {
    sizes.key_columns = 0;
    for (const int64_t length : *request.key_lengths) sizes.key_columns = std::max(sizes.key_columns, length);
  }
  return sizes;
}

// Names a limit of the server in a message: "at most 2048, --max_head_dim of the server at unix:/run/triad".
class ServerLimits {
 public:
  explicit ServerLimits(const std::string& target) : target_(target) {}

  // nullopt for `value`: it does not fit in 63 bits.
  absl::Status Check(absl::string_view what, std::optional<int64_t> value, absl::string_view flag,
                     int64_t limit) const {
    if (limit <= 0 || (value && *value <= limit)) return absl::OkStatus();
    return Refuse(what, absl::StrCat("be at most ", limit, ", --", flag, " of the server at ", target_),
                  value ? absl::StrCat(*value) : "more than 2^63");
  }

 private:
  const std::string& target_;
};

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
  const std::optional<int64_t> bytes = Product(factors);
  if (!bytes) {
    return Refuse(absl::StrCat(field, ".shape"), "describe fewer than 2^63 bytes", ToString(tensor.shape));
  }
  if (static_cast<int64_t>(tensor.data.size()) != *bytes) {
    return Refuse(absl::StrCat(field, ".data"),
                  absl::StrCat("have the ", *bytes, " bytes of ", Name(tensor.dtype), " ", ToString(tensor.shape)),
                  tensor.data.size());
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const AttendRequest& request) {
  absl::Status status = CheckTensor("query", request.query);
  if (status.ok()) status = CheckTensor("key", request.key);
  if (status.ok()) status = CheckTensor("value", request.value);
  if (status.ok() && request.keep) status = CheckTensor("keep", *request.keep);
  if (status.ok() && request.bias) status = CheckTensor("bias", *request.bias);
  return status;
}

absl::Status CheckOwnLimit(int64_t bytes, int64_t max_message_bytes) {
  if (bytes <= max_message_bytes) return absl::OkStatus();
  return Refuse("bytes of the request",
                absl::StrCat("be at most ", max_message_bytes, ", ClientOptions::max_message_bytes of this client"),
                bytes);
}

absl::Status CheckServerLimits(const AttendRequest& request, int64_t bytes, const Limits& limits,
                               const std::string& target) {
  const ServerLimits server(target);
  absl::Status status = server.Check("bytes of the request", bytes, "max_message_bytes", limits.max_message_bytes);
  const std::optional<Sizes> sizes = ReadSizes(request);
  if (!status.ok() || !sizes) return status;
  status = server.Check("batch of the request", sizes->batch, "max_batch", limits.max_batch);
  if (status.ok()) status = server.Check("qk_head_dim", sizes->qk_head_dim, "max_head_dim", limits.max_head_dim);
  if (status.ok()) status = server.Check("v_head_dim", sizes->v_head_dim, "max_head_dim", limits.max_head_dim);
  if (!status.ok()) return status;

  // Shapes passed CheckTensors, so that a sum of two tokens counts fits unless widths of 0 let them be absurd.
  int64_t tokens = 0;
  const bool fits = !__builtin_add_overflow(sizes->q_len, sizes->kv_len, &tokens);
  status = server.Check("query and key tokens of all sequences", fits ? Product({sizes->batch, tokens}) : std::nullopt,
                        "max_tokens_per_request", limits.max_tokens_per_request);
  if (!status.ok() || !request.return_weights) return status;
  const auto weights_bytes =
      Product({sizes->batch, sizes->heads, sizes->q_len, sizes->key_columns, ByteSize(DataType::kFloat32)});
  return server.Check("bytes of the weights", weights_bytes, "max_weights_bytes", limits.max_weights_bytes);
}

}  // namespace triad::client
