#include "client/tools/tensor_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tools/tensor_bridge.h"
#include "core/tensor/npy_file.h"

namespace triad::tools {
namespace {

// The only tensor of booleans; all others are numbers.
constexpr absl::string_view kMask = "keep";

// `tensor`, of numbers, in another type, rounded to nearest. INVALID_ARGUMENT when a finite value would become
// infinite.
absl::StatusOr<Tensor> Convert(const TensorView& tensor, DType dtype) {
  absl::StatusOr<Tensor> converted = Tensor::Zeros(dtype, tensor.shape);
  if (!converted.ok()) return converted;
  for (int64_t i = 0; i < converted->element_count(); ++i) {
    const float value = LoadElement(tensor.data + i * ByteSize(tensor.dtype), tensor.dtype);
    std::byte* target = converted->data() + i * ByteSize(dtype);
    StoreElement(target, dtype, value);
    if (std::isfinite(value) && std::isinf(LoadElement(target, dtype))) {
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is ", value, ", past the range of ", Name(dtype)));
    }
  }
  return converted;
}

}  // namespace

absl::Status TensorInputs::OpenCollection(const std::string& path, const std::vector<std::string>& known_names) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  for (const std::string& name : file->view().names()) {
    if (std::count(known_names.begin(), known_names.end(), name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": '", name, "' is none of ", absl::StrJoin(known_names, ", "), "; rename or remove it"));
    }
  }
  collection_ = std::make_shared<const SafetensorsFile>(*std::move(file));
  return absl::OkStatus();
}

TensorInputs::Found TensorInputs::Own(Tensor tensor) {
  const auto owner = std::make_shared<const Tensor>(std::move(tensor));
  return {.view = owner->view(), .owner = owner};
}

client::TensorView TensorInputs::ToRequest(const Found& found) {
  client::TensorView view = ToClient(found.view);
  view.owner = found.owner;
  return view;
}

absl::Status TensorInputs::WrongType(const std::string& name, bool is_npy, absl::string_view what) {
  absl::string_view accepted = name == kMask ? "BOOL" : "F32, BF16 and F16";
  if (is_npy) {
    accepted = name == kMask ? "booleans, or bytes (uint8)"
                             : "float32 and float16; --dtype f32 converts doubles and integers, --dtype bf16 takes "
                               "two-byte void for bfloat16";
  }
  return absl::InvalidArgumentError(absl::StrCat(what, "; ", name, " takes ", accepted));
}

absl::StatusOr<std::optional<TensorInputs::Found>> TensorInputs::FindTyped(const std::string& name,
                                                                           const std::string& path) {
  absl::StatusOr<std::optional<Found>> found = Find(name, path);
  const bool is_npy = !path.empty();
  if (absl::IsUnimplemented(found.status())) return WrongType(name, is_npy, found.status().message());
  if (!found.ok() || !*found || IsFloat((*found)->view.dtype) == (name != kMask)) return found;
  return WrongType(name, is_npy,
                   absl::StrCat(is_npy ? path : name, ": is of type ", triad::Name((*found)->view.dtype)));
}

absl::StatusOr<std::optional<TensorInputs::Found>> TensorInputs::Find(const std::string& name,
                                                                      const std::string& path) {
  if (path.empty()) {
    if (collection_ == nullptr || !collection_->view().contains(name)) return std::optional<Found>();
    const absl::StatusOr<TensorView> view = collection_->view().Find(name);
    if (!view.ok()) return view.status();
    return Found{.view = *view, .owner = collection_};
  }
  if (absl::EndsWith(path, ".safetensors")) {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " takes a .npy file; give ", path,
                                                   " as --input, with a tensor named ", name, " in it"));
  }
  absl::StatusOr<Tensor> tensor = ReadNpy(path, {.accept_void_as_bf16 = dtype_ == DType::kBf16,
                                                 .accept_uint8_as_bool = name == kMask,
                                                 .convert_to_f32 = dtype_.has_value() && name != kMask});
  if (!tensor.ok()) return tensor.status();
  return Own(*std::move(tensor));
}

absl::StatusOr<TensorInputs::Found> TensorInputs::Converted(const std::string& name, const Found& tensor) {
  if (!dtype_ || tensor.view.dtype == *dtype_) return tensor;
  absl::StatusOr<Tensor> converted = Convert(tensor.view, *dtype_);
  if (!converted.ok()) return NamePath(converted.status(), name);
  return Own(*std::move(converted));
}

absl::Status TensorInputs::Fill(const std::string& name, const std::string& path, client::TensorView& target) {
  std::optional<client::TensorView> found;
  if (absl::Status status = FillFloats(name, path, found); !status.ok()) return status;
  if (!found) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no ", name, ": give --", name, " FILE.npy, or --input FILE.safetensors with a tensor named ", name));
  }
  target = *std::move(found);
  return absl::OkStatus();
}

absl::Status TensorInputs::FillFloats(const std::string& name, const std::string& path,
                                      std::optional<client::TensorView>& target) {
  const absl::StatusOr<std::optional<Found>> found = FindTyped(name, path);
  if (!found.ok() || !*found) return found.status();
  const absl::StatusOr<Found> converted = Converted(name, **found);
  if (converted.ok()) target = ToRequest(*converted);
  return converted.status();
}

absl::Status TensorInputs::FillOptional(const std::string& name, const std::string& path,
                                        std::optional<client::TensorView>& target) {
  const absl::StatusOr<std::optional<Found>> found = FindTyped(name, path);
  if (found.ok() && *found) target = ToRequest(**found);
  return found.status();
}

absl::Status TensorInputs::FillList(const std::string& name, std::vector<float>& values) {
  if (!values.empty()) return absl::OkStatus();
  const absl::StatusOr<std::optional<Found>> found = Find(name, /*path=*/"");
  if (!found.ok() || !*found) return found.status();
  const TensorView& list = (*found)->view;
  if (list.rank() != 1 || !IsFloat(list.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' must hold one number per head; was ", Name(list.dtype), " ", ToString(list.shape)));
  }
  for (int64_t head = 0; head < list.shape[0]; ++head) {
    values.push_back(LoadElement(list.data + head * ByteSize(list.dtype), list.dtype));
  }
  return absl::OkStatus();
}

}  // namespace triad::tools
