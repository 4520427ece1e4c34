#include "client/tools/attend_inputs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tools/tensor_bridge.h"
#include "core/tensor/npy_file.h"

namespace triad::tools {
namespace {

constexpr const char* kNames[] = {"query", "key", "value", "keep", "bias", "alibi_slopes", "sinks"};

absl::StatusOr<SafetensorsFile> OpenInput(const std::string& path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) return file;
  for (const std::string& name : file->view().names()) {
    if (std::count(std::begin(kNames), std::end(kNames), name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": '", name, "' is none of ", absl::StrJoin(kNames, ", "), "; rename or remove it"));
    }
  }
  return file;
}

}  // namespace

absl::StatusOr<Tensor> Convert(const TensorView& tensor, DType dtype) {
  if (!IsFloat(tensor.dtype) || !IsFloat(dtype)) return absl::InvalidArgumentError("BOOL cannot be converted");
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

absl::StatusOr<std::optional<TensorView>> AttendInputs::Find(const std::string& name, const std::string& path,
                                                             const std::optional<DType>& dtype) {
  if (path.empty()) {
    if (!input_ || !input_->view().contains(name)) return std::optional<TensorView>();
    return input_->view().Find(name);
  }
  absl::StatusOr<Tensor> tensor = ReadNpy(path, {.accept_void_as_bf16 = dtype == DType::kBf16,
                                                 .accept_uint8_as_bool = name == "keep",
                                                 .convert_to_f32 = dtype.has_value() && name != "keep"});
  if (tensor.ok()) return tensors_.emplace_back(*std::move(tensor)).view();
  if (!absl::IsUnimplemented(tensor.status()) || dtype || name == "keep") return tensor.status();
  return absl::InvalidArgumentError(
      absl::StrCat(tensor.status().message(),
                   "; --dtype f32 converts doubles and integers, --dtype bf16 takes two-byte "
                   "void for bfloat16"));
}

absl::Status AttendInputs::Fill(const std::string& name, const std::string& path, const std::optional<DType>& dtype,
                                client::TensorView& target) {
  absl::StatusOr<std::optional<TensorView>> found = Find(name, path, dtype);
  if (!found.ok()) return found.status();
  if (!*found) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no ", name, ": give --", name, " FILE.npy, or --input FILE.safetensors with a tensor named ", name));
  }
  TensorView view = **found;
  if (dtype && view.dtype != *dtype) {
    absl::StatusOr<Tensor> converted = Convert(view, *dtype);
    if (!converted.ok()) return NamePath(converted.status(), name);
    view = tensors_.emplace_back(*std::move(converted)).view();
  }
  target = ToClient(view);
  return absl::OkStatus();
}

absl::Status AttendInputs::FillOptional(const std::string& name, const std::string& path,
                                        const std::optional<DType>& dtype, std::optional<client::TensorView>& target) {
  const absl::StatusOr<std::optional<TensorView>> found = Find(name, path, dtype);
  if (found.ok() && *found) target = ToClient(**found);
  return found.status();
}

absl::Status AttendInputs::FillList(const std::string& name, std::vector<float>& values) {
  if (!values.empty()) return absl::OkStatus();
  const absl::StatusOr<std::optional<TensorView>> found = Find(name, /*path=*/"", /*dtype=*/std::nullopt);
  if (!found.ok() || !*found) return found.status();
  const TensorView& list = **found;
  if (list.rank() != 1 || !IsFloat(list.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' must hold one number per head; was ", Name(list.dtype), " ", ToString(list.shape)));
  }
  for (int64_t head = 0; head < list.shape[0]; ++head) {
    values.push_back(LoadElement(list.data + head * ByteSize(list.dtype), list.dtype));
  }
  return absl::OkStatus();
}

absl::StatusOr<AttendInputs> AttendInputs::Load(const AttendFlags& flags) {
  AttendInputs inputs;
  client::AttendRequest& request = inputs.request_;
  request = flags.request;
  request.return_lse |= !flags.lse.empty();
  request.return_weights |= !flags.weights.empty();
  if (!flags.input.empty()) {
    absl::StatusOr<SafetensorsFile> file = OpenInput(flags.input);
    if (!file.ok()) return file.status();
    inputs.input_ = *std::move(file);
  }
  if (absl::Status status = inputs.Fill("query", flags.query, flags.dtype, request.query); !status.ok()) return status;
  if (absl::Status status = inputs.Fill("key", flags.key, flags.dtype, request.key); !status.ok()) return status;
  if (absl::Status status = inputs.Fill("value", flags.value, flags.dtype, request.value); !status.ok()) return status;
  absl::Status status = inputs.FillOptional("keep", flags.keep, flags.dtype, request.keep);
  if (status.ok()) status = inputs.FillOptional("bias", flags.bias, flags.dtype, request.bias);
  if (status.ok()) status = inputs.FillList("alibi_slopes", request.alibi_slopes);
  if (status.ok()) status = inputs.FillList("sinks", request.sinks);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace triad::tools
