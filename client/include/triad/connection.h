// What a Client stands on: the real thing, a decorator around it, or a test's fake.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/attend_stream.h"
#include "triad/options.h"
#include "triad/server_info.h"

namespace triad::client {

using AttendCallback = std::function<void(absl::StatusOr<AttendResponse>)>;
using ServerInfoCallback = std::function<void(absl::StatusOr<ServerInfo>)>;

// The calls a server answers. Contracts are those of the functions of Client with the same names. All functions may be
// called from any thread.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) = 0;
  virtual void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) = 0;
  virtual absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) = 0;
  virtual absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) = 0;
  virtual void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) = 0;
  virtual absl::StatusOr<Health> CheckHealth(const std::string& service, const CallOptions& options) = 0;
};

// A connection to a server over gRPC, with retries and limits checked before sending. Does not wait for the server: it
// need not be there yet. INVALID_ARGUMENT names the option at fault; NOT_FOUND: a certificate file that cannot be read.
absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(const ClientOptions& options);

}  // namespace triad::client
