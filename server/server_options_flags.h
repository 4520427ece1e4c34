// The absl::flags behind ServerOptions. Only server_options.cc uses this.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/server_options.h"

namespace triad {

// Sets flag `name` from text; of bytes also from "64KiB", "256MiB" or "2GiB". INVALID_ARGUMENT: there is no such flag,
// or it cannot be that, with the rule.
absl::Status SetServerFlag(absl::string_view name, absl::string_view value);

// Parses the command line (program name first) and gives every flag's value, validated only as far as its type goes. A
// flag given again replaces its value; one that takes several values adds to them, and the first replaces those of the
// environment.
// INVALID_ARGUMENT: an argument that is no flag, an unknown flag, or a value that it cannot have.
absl::StatusOr<ServerOptions> ParseServerFlags(const std::vector<std::string>& arguments);

// The text of --help.
std::string ServerFlagsHelp();

}  // namespace triad
