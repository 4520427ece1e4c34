// How core words a refusal of a request or a layer.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace triad {

// INVALID_ARGUMENT: "<field> must <rule>; was <was>".
inline absl::Status Refuse(absl::string_view field, absl::string_view rule, const absl::AlphaNum& was) {
  return absl::InvalidArgumentError(absl::StrCat(field, " must ", rule, "; was ", was));
}

}  // namespace triad
