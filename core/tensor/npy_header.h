// The dictionary at the start of a .npy file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/tensor.h"

namespace triad {

struct NpyHeader {
  std::string descr;           // numpy's type string, such as "<f4"; not checked here
  bool fortran_order = false;  // true: the first index varies fastest
  Shape shape;                 // every dimension >= 0
};

// Parses `text`, such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n". A small subset of Python,
// nothing of which nests: the three keys, once each and in any order, spaces between tokens, spaces and one newline at
// the end. INVALID_ARGUMENT for anything else, naming the place.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

// The dictionary as numpy writes it, without padding and newline.
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace triad
