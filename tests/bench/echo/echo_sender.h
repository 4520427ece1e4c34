// The client's side of the yardstick.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/tools/bench/request_sender.h"

namespace triad {

// Sends `request` each time, whatever is planned, and leaves the reply unparsed; over channels as the client library
// makes them. Errors: the target is none.
absl::StatusOr<std::unique_ptr<tools::RequestSender>> MakeEchoSender(const std::string& target, int connections,
                                                                     const std::string& request);

}  // namespace triad
