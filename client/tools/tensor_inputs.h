// The tensors that a command sends: files, read and converted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/dtype.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"
#include "triad/tensor.h"

namespace triad::tools {

// Reads what requests send; they share its memory.
class TensorInputs {
 public:
  // `dtype`: what Fill and FillFloats convert to; unset: nothing is converted.
  explicit TensorInputs(const std::optional<DType>& dtype) : dtype_(dtype) {}

  // From now on tensors without a .npy file of their own come from the .safetensors file `path`. Errors name the path;
  // INVALID_ARGUMENT: a tensor in it is none of `known_names`.
  absl::Status OpenCollection(const std::string& path, const std::vector<std::string>& known_names);

  // Reads the tensor `name` from the .npy file `path`, or where that is empty from the collection. Errors name the file
  // or tensor, and the flag that would help.
  //
  // Converted, and required.
  absl::Status Fill(const std::string& name, const std::string& path, client::TensorView& target);
  // Converted, and left unset where there is none.
  absl::Status FillFloats(const std::string& name, const std::string& path, std::optional<client::TensorView>& target);
  // Not converted (keep and bias), and left unset where there is none.
  absl::Status FillOptional(const std::string& name, const std::string& path,
                            std::optional<client::TensorView>& target);
  // A list of numbers: rank 1 in the collection, unless flags gave `values`.
  absl::Status FillList(const std::string& name, std::vector<float>& values);

 private:
  // A tensor and what it lies in.
  struct Found {
    TensorView view;
    std::shared_ptr<const void> owner;
  };
  static Found Own(Tensor tensor);
  static client::TensorView ToRequest(const Found& found);

  // `what` is wrong, and what the tensor `name` may be: in a .npy file, or in the collection.
  static absl::Status WrongType(const std::string& name, bool is_npy, absl::string_view what);
  // As Find; also INVALID_ARGUMENT: numbers where booleans belong, or the other way round.
  absl::StatusOr<std::optional<Found>> FindTyped(const std::string& name, const std::string& path);
  // nullopt when neither file has the tensor. UNIMPLEMENTED: it is of a type that is not read.
  absl::StatusOr<std::optional<Found>> Find(const std::string& name, const std::string& path);
  // `tensor`, converted where that is asked for and needed.
  absl::StatusOr<Found> Converted(const std::string& name, const Found& tensor);

  std::optional<DType> dtype_;
  std::shared_ptr<const SafetensorsFile> collection_;  // shared with requests; may be null
};

}  // namespace triad::tools
