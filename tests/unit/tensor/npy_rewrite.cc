// Reads a .npy file and writes it again: what npy_numpy_test.py drives.
//
//   triad_npy_rewrite IN OUT [void_as_bf16] [uint8_as_bool] [convert_to_f32]
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "core/tensor/npy_file.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto told = [&](const char* word) { return std::count(arguments.begin(), arguments.end(), word) > 0; };
  if (arguments.size() < 2) return 2;
  const triad::NpyReadOptions options = {.accept_void_as_bf16 = told("void_as_bf16"),
                                         .accept_uint8_as_bool = told("uint8_as_bool"),
                                         .convert_to_f32 = told("convert_to_f32")};
  const absl::StatusOr<triad::Tensor> tensor = triad::ReadNpy(arguments[0], options);
  const absl::Status status = tensor.ok() ? triad::WriteNpy(arguments[1], tensor->view()) : tensor.status();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
