// The JSON at the start of a .safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/tensor.h"

namespace triad {

struct SafetensorsEntry {
  std::string dtype;   // the format's name, such as "BF16"; not checked here
  Shape shape;         // every dimension >= 0
  int64_t begin = -1;  // data_offsets: bytes from the end of the header, both >= 0; not checked against each other here
  int64_t end = -1;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__": text for people
};

// Parses `json`: one object of entries with dtype, shape and data_offsets, once each and nothing else; names are
// unique. Nesting past what this needs is refused as it is met. INVALID_ARGUMENT, naming tensor and reason.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json);

// The JSON for `header`. INVALID_ARGUMENT when a name is not UTF-8.
absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header);

}  // namespace triad
