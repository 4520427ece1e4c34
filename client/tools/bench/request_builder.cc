#include "client/tools/bench/request_builder.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/tools/tensor_bridge.h"
#include "core/base/dims.h"
#include "core/base/random.h"

namespace triad::tools {
namespace {

// Distinct numbers. A prime, so that rows of the usual widths do not repeat within a tensor; 1 MiB of f32.
constexpr int64_t kPeriod = 262139;
// protobuf's end. What a server accepts is checked by the client library.
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

// Elements of the largest tensor of numbers; nullopt when it does not fit.
std::optional<int64_t> LargestTensor(const Workload& w, const PlannedRequest& longest) {
  int64_t largest = 0;
  const auto take = [&](std::initializer_list<int64_t> shape) {
    const auto elements = CheckedProduct(shape);
    if (elements) largest = std::max(largest, *elements);
    return elements.has_value();
  };
  const bool fits =
      w.kind == Workload::Kind::kAttend
          ? take({w.batch, longest.tokens, w.heads, w.qk_head_dim}) &&
                take({w.batch, longest.kv_len, w.kv_heads, std::max(w.qk_head_dim, w.v_head_dim)})
          : take({w.batch, longest.tokens, w.model_dim}) && take({w.batch, longest.kv_len, w.context_dim});
  return fits ? std::optional(largest) : std::nullopt;
}

bool FitsMessage(std::optional<int64_t> elements, int64_t element_bytes) {
  const auto bytes = elements ? CheckedMul(*elements, element_bytes) : std::nullopt;
  return bytes && *bytes <= kMaxTensorBytes;
}

}  // namespace

absl::StatusOr<RequestBuilder> RequestBuilder::Create(const Workload& workload, const PlannedRequest& longest) {
  const auto elements = LargestTensor(workload, longest);
  const auto mask = workload.keep < 1 ? CheckedMul(longest.tokens, longest.kv_len) : std::optional<int64_t>(0);
  const int64_t element_bytes = ByteSize(workload.dtype);
  if (!FitsMessage(elements, element_bytes) || !FitsMessage(mask, 1)) {
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of ", longest.tokens, " tokens or ", longest.kv_len,
                                                     " keys must have at most ", kMaxTensorBytes, " bytes"));
  }
  RequestBuilder builder(workload);
  Random random(kContentSeed);
  std::vector<std::byte> numbers(static_cast<size_t>((kPeriod + *elements) * element_bytes));
  for (int64_t i = 0; i < kPeriod; ++i) {
    StoreElement(numbers.data() + i * element_bytes, workload.dtype, random.Deviate());
  }
  RepeatPeriod(element_bytes, numbers);
  builder.numbers_ = std::make_shared<const std::vector<std::byte>>(std::move(numbers));
  if (workload.keep < 1) {
    std::vector<std::byte> keep(static_cast<size_t>(kPeriod + *mask));
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
