#include "server/decode_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {
namespace {

// No tensor of the contract has more. Checked before a shape is copied, because a client may send one of a million
// dimensions.
constexpr int kMaxRank = 4;

std::optional<DType> DecodeDType(v1::DataType dtype) {
  switch (dtype) {
    case v1::FLOAT32:
      return DType::kF32;
    case v1::BFLOAT16:
      return DType::kBf16;
    case v1::FLOAT16:
      return DType::kF16;
    case v1::BOOL:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<TensorView> DecodeTensor(absl::string_view field, const v1::Tensor& message, const Pieces* pieces) {
  const std::optional<DType> dtype = DecodeDType(message.dtype());
  if (!dtype) return RefuseField(absl::StrCat(field, ".dtype"), "be named", v1::DataType_Name(message.dtype()));
  if (message.shape_size() > kMaxRank) {
    return RefuseField(absl::StrCat(field, ".shape"), absl::StrCat("have at most ", kMaxRank, " dimensions"),
                       message.shape_size());
  }
  if (pieces != nullptr && pieces->size() == 0) pieces = nullptr;
  const int64_t data_bytes = pieces == nullptr ? static_cast<int64_t>(message.data().size()) : pieces->size();
  TensorView view{.data = pieces == nullptr ? reinterpret_cast<const std::byte*>(message.data().data()) : nullptr,
                  .pieces = pieces,
                  .dtype = *dtype,
                  .shape = Shape(message.shape().begin(), message.shape().end())};
  const std::optional<int64_t> bytes = TensorBytes(view.dtype, view.shape);
  if (!bytes) {
    return RefuseField(absl::StrCat(field, ".shape"), "have no negative dimension and fewer than 2^63 bytes",
                       ToString(view.shape));
  }
  if (*bytes != data_bytes) {
    return RefuseField(absl::StrCat(field, ".data"),
                       absl::StrCat("have the ", *bytes, " bytes of ", Name(view.dtype), " ", ToString(view.shape)),
                       absl::StrCat(data_bytes, " bytes"));
  }
  return view;
}

absl::Status DecodeRequiredTensors(std::initializer_list<RequiredTensor> tensors) {
  for (const RequiredTensor& tensor : tensors) {
    if (!tensor.is_given) return RefuseField(tensor.field, "be given", "unset");
    absl::StatusOr<TensorView> view = DecodeTensor(tensor.field, tensor.message, tensor.pieces);
    if (!view.ok()) return view.status();
    tensor.view = *std::move(view);
  }
  return absl::OkStatus();
}

absl::Status DecodeOptionalTensors(std::initializer_list<OptionalTensor> tensors) {
  for (const OptionalTensor& tensor : tensors) {
    if (!tensor.is_given) continue;
    absl::StatusOr<TensorView> view = DecodeTensor(tensor.field, tensor.message);
    if (!view.ok()) return view.status();
    tensor.view = *std::move(view);
  }
  return absl::OkStatus();
}

absl::Status DecodeLengths(std::initializer_list<OptionalLengths> fields, int64_t max_batch) {
  for (const OptionalLengths& field : fields) {
    if (!field.is_given) continue;
    if (field.message.values_size() > max_batch) {
      return RefuseField(field.field, absl::StrCat("have at most --max_batch = ", max_batch, " entries"),
                         field.message.values_size());
    }
    field.lengths.emplace(field.message.values().begin(), field.message.values().end());
  }
  return absl::OkStatus();
}

Layout DecodeLayout(v1::Layout layout) {
  switch (layout) {
    case v1::HEADS_TOKENS:
      return Layout::kHeadsTokens;
    case v1::PACKED:
      return Layout::kPacked;
    default:
      return Layout::kTokensHeads;
  }
}

Priority DecodePriority(v1::Priority priority) { return priority == v1::LOW ? Priority::kLow : Priority::kNormal; }

}  // namespace triad
