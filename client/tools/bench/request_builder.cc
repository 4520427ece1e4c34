#include "client/tools/bench/request_builder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/tools/tensor_bridge.h"
#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace triad::tools {
namespace {

// Distinct numbers. A prime, so that rows of the usual widths do not repeat within a tensor; 1 MiB of f32.
constexpr int64_t kPeriod = 262139;
// protobuf's end.
constexpr int64_t kMaxTensorBytes = (int64_t{1} << 31) - 1;
constexpr uint64_t kContentSeed = 1;

// What a window is for.
enum Role : uint64_t { kQuery, kKey, kValue, kInput, kContext, kKeep };

// Repeats the first kPeriod elements of `element_bytes` up to the end of `array`.
void RepeatPeriod(int64_t element_bytes, std::vector<std::byte>& array) {
  const auto period_bytes = static_cast<size_t>(kPeriod * element_bytes);
  for (size_t at = period_bytes; at < array.size(); at += period_bytes) {
    std::memcpy(array.data() + at, array.data(), std::min(period_bytes, array.size() - at));
  }
}

struct Part {
  absl::string_view name;
  DType dtype;
  Shape shape;
};

// The tensors of a request like `longest`.
std::vector<Part> PartsOf(const Workload& w, const PlannedRequest& longest) {
  std::vector<Part> parts;
  if (w.kind == Workload::Kind::kAttend) {
    parts.push_back({"query", w.dtype, {w.batch, longest.tokens, w.heads, w.qk_head_dim}});
    parts.push_back({"key", w.dtype, {w.batch, longest.kv_len, w.kv_heads, w.qk_head_dim}});
    parts.push_back({"value", w.dtype, {w.batch, longest.kv_len, w.kv_heads, w.v_head_dim}});
  } else {
    parts.push_back({"input", w.dtype, {w.batch, longest.tokens, w.model_dim}});
    parts.push_back({"context", w.dtype, {w.batch, longest.kv_len, w.context_dim}});
  }
  if (w.keep < 1) parts.push_back({"keep", DType::kBool, {1, 1, longest.tokens, longest.kv_len}});
  return parts;
}

}  // namespace

absl::Status CheckRequestSizes(const Workload& workload, const PlannedRequest& longest) {
  for (const Part& part : PartsOf(workload, longest)) {
    const auto bytes = TensorBytes(part.dtype, part.shape);
    if (bytes && *bytes <= kMaxTensorBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("the ", part.name, " of the longest request, ", Name(part.dtype),
                                                   " ", ToString(part.shape), ", must have at most ", kMaxTensorBytes,
                                                   " bytes; was ", bytes ? absl::StrCat(*bytes) : "more than 2^63"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RequestBuilder> RequestBuilder::Create(const Workload& workload, const PlannedRequest& longest) {
  if (absl::Status status = CheckRequestSizes(workload, longest); !status.ok()) return status;
  int64_t largest_bytes = 0;  // of numbers
  for (const Part& part : PartsOf(workload, longest)) {
    if (IsFloat(part.dtype)) largest_bytes = std::max(largest_bytes, *TensorBytes(part.dtype, part.shape));
  }
  const int64_t element_bytes = ByteSize(workload.dtype);
  RequestBuilder builder(workload);
  Random random(kContentSeed);
  std::vector<std::byte> numbers(static_cast<size_t>(kPeriod * element_bytes + largest_bytes));
  for (int64_t i = 0; i < kPeriod; ++i) {
    StoreElement(numbers.data() + i * element_bytes, workload.dtype, random.Deviate());
  }
  RepeatPeriod(element_bytes, numbers);
  builder.numbers_ = std::make_shared<const std::vector<std::byte>>(std::move(numbers));
  if (workload.keep < 1) {
    std::vector<std::byte> keep(static_cast<size_t>(kPeriod + longest.tokens * longest.kv_len));
    for (int64_t i = 0; i < kPeriod; ++i) {
      keep[static_cast<size_t>(i)] = random.Unit() < workload.keep ? std::byte{1} : std::byte{0};
    }
    RepeatPeriod(1, keep);
    builder.keep_ = std::make_shared<const std::vector<std::byte>>(std::move(keep));
  }
  return builder;
}

client::TensorView RequestBuilder::Numbers(uint64_t seed, uint64_t role, client::Shape shape) const {
  int64_t bytes = ByteSize(workload_.dtype);
  const int64_t start = Random(seed + role).Below(kPeriod) * bytes;
  for (const int64_t extent : shape) bytes *= extent;
  return {ToClient(workload_.dtype), std::move(shape),
          absl::MakeConstSpan(numbers_->data() + start, static_cast<size_t>(bytes)), numbers_};
}

std::optional<client::TensorView> RequestBuilder::Keep(const PlannedRequest& plan) const {
  if (keep_ == nullptr) return std::nullopt;
  const int64_t start = Random(plan.seed + kKeep).Below(kPeriod);
  return client::TensorView{client::DataType::kBool,
                            {1, 1, plan.tokens, plan.kv_len},
                            absl::MakeConstSpan(keep_->data() + start, static_cast<size_t>(plan.tokens * plan.kv_len)),
                            keep_};
}

client::AttendRequest RequestBuilder::Attend(const PlannedRequest& plan) const {
  const Workload& w = workload_;
  client::AttendRequest request;
  request.query = Numbers(plan.seed, kQuery, {w.batch, plan.tokens, w.heads, w.qk_head_dim});
  request.key = Numbers(plan.seed, kKey, {w.batch, plan.kv_len, w.kv_heads, w.qk_head_dim});
  request.value = Numbers(plan.seed, kValue, {w.batch, plan.kv_len, w.kv_heads, w.v_head_dim});
  request.causal = w.causal;
  if (w.causal) request.alignment = client::Alignment::kBottomRight;
  request.keep = Keep(plan);
  return request;
}

client::ForwardRequest RequestBuilder::Forward(const PlannedRequest& plan) const {
  const Workload& w = workload_;
  client::ForwardRequest request;
  request.layer = w.layer;
  request.version = w.layer_version;
  request.input = Numbers(plan.seed, kInput, {w.batch, plan.tokens, w.model_dim});
  if (w.context_dim > 0) request.context = Numbers(plan.seed, kContext, {w.batch, plan.kv_len, w.context_dim});
  request.keep = Keep(plan);
  return request;
}

}  // namespace triad::tools
