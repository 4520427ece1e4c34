// What `triad attend` sends: files, read and converted, as a request.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tools/attend_flags.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"
#include "triad/attend.h"

namespace triad::tools {

// A request and the memory that it borrows. Movable.
class AttendInputs {
 public:
  // Reads the files that `flags` name. Errors name the file or tensor, and the flag that would help.
  static absl::StatusOr<AttendInputs> Load(const AttendFlags& flags);

  const client::AttendRequest& request() const { return request_; }

 private:
  AttendInputs() = default;

  // The tensor `name` from the .npy file `path`, or else from the input file; nullopt when neither has it.
  absl::StatusOr<std::optional<TensorView>> Find(const std::string& name, const std::string& path,
                                                 const std::optional<DType>& dtype);
  // Query, key or value: required, and converted to `dtype`.
  absl::Status Fill(const std::string& name, const std::string& path, const std::optional<DType>& dtype,
                    client::TensorView& target);
  // Keep or bias.
  absl::Status FillOptional(const std::string& name, const std::string& path, const std::optional<DType>& dtype,
                            std::optional<client::TensorView>& target);
  // Slopes or sinks: a tensor of rank 1 in the input file, unless flags gave `values`.
  absl::Status FillList(const std::string& name, std::vector<float>& values);

  std::optional<SafetensorsFile> input_;
  std::vector<Tensor> tensors_;    // what was read from .npy files or converted
  client::AttendRequest request_;  // borrows from both
};

// `tensor` in another type, rounded to nearest. INVALID_ARGUMENT for booleans, and when a finite value would become
// infinite.
absl::StatusOr<Tensor> Convert(const TensorView& tensor, DType dtype);

}  // namespace triad::tools
