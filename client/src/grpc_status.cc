#include "client/src/grpc_status.h"

#include "absl/strings/string_view.h"
#include "client/src/retry_policy.h"

namespace triad::client {

absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  const auto& metadata = context.GetServerTrailingMetadata();
  if (const auto pushback = metadata.find("grpc-retry-pushback-ms"); pushback != metadata.end()) {
    SetRetryPushback(ParsePushback(absl::string_view(pushback->second.data(), pushback->second.size())), converted);
  }
  return converted;
}

}  // namespace triad::client
