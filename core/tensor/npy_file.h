// numpy's .npy files (format versions 1, 2 and 3; numpy.lib.format describes them).
//
// A file is either read as what it says it is, or refused: C and Fortran order and both byte orders give the same
// row-major, little-endian tensor; objects, structures, complex numbers and strings are refused by name.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace triad {

// f4, f2 and b1 are always read, as FLOAT32, FLOAT16 and BOOL. What else a caller accepts:
struct NpyReadOptions {
  // V2 (two opaque bytes, little-endian) is BFLOAT16. ml_dtypes writes bfloat16 so, but a file cannot say that this was
  // meant.
  bool accept_void_as_bf16 = false;
  // u1 is BOOL: 0 is false, anything else true.
  bool accept_uint8_as_bool = false;
  // f8 and integers become FLOAT32, rounded to nearest. A finite value past the range of FLOAT32 is refused.
  bool convert_to_f32 = false;
};

// The tensor in the .npy file `path`. Blocks for the file system only; memory is bounded by a small multiple of the
// file's size. INVALID_ARGUMENT for a file that is malformed, too short or too long, or has a value that cannot be
// converted; UNIMPLEMENTED for a type that is not accepted; else as MappedFile::Open. Messages name the path.
absl::StatusOr<Tensor> ReadNpy(const std::string& path, const NpyReadOptions& options = {});

// As ReadNpy, for the whole `file` in memory.
absl::StatusOr<Tensor> ParseNpy(absl::Span<const std::byte> file, const NpyReadOptions& options = {});

// Everything that goes before the data of `tensor`: format version 1, its size a multiple of 64. BFLOAT16 becomes
// '<V2', as ml_dtypes has it: numpy.load(path).view(ml_dtypes.bfloat16) reads it back.
std::string NpyPrefix(const TensorView& tensor);

// Creates or replaces `path`. Errors as WriteFile.
absl::Status WriteNpy(const std::string& path, const TensorView& tensor);

}  // namespace triad
