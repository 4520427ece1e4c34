// Errors that several parts of the server answer with, each worded once.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace triad {

// INVALID_ARGUMENT: "<field> must <rule>; was <was>".
absl::Status RefuseField(absl::string_view field, absl::string_view rule, const absl::AlphaNum& was);

// UNAVAILABLE: new work, once the server drains. The scheduler says the same to what it ends.
absl::Status DrainingError();

// `text` in quotes for a message: at most 100 bytes of it, and nothing but printable ASCII, because a client chose it.
std::string Quoted(absl::string_view text);

}  // namespace triad
