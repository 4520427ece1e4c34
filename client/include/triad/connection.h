// What a Client stands on: the real thing, a decorator around it, or a test's fake.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/forward.h"
#include "triad/layers.h"
#include "triad/options.h"
#include "triad/server_info.h"
#include "triad/stream.h"

namespace triad::client {

using AttendCallback = std::function<void(absl::StatusOr<AttendResponse>)>;
using ForwardCallback = std::function<void(absl::StatusOr<ForwardResponse>)>;
using ServerInfoCallback = std::function<void(absl::StatusOr<ServerInfo>)>;

// The calls a server answers. Contracts are those of the functions of Client with the same names. All functions may be
// called from any thread.
//
// What is not overridden answers UNIMPLEMENTED (an Async function from within), so that a fake holds only what its test
// needs, and survives functions that are added here.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options);
  virtual void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done);
  virtual absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options);

  virtual absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options);
  virtual void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done);
  virtual absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions& options);

  virtual absl::StatusOr<std::vector<Layer>> ListLayers(const std::string& name, const CallOptions& options);
  virtual absl::StatusOr<Layer> GetLayer(const LayerName& layer, const CallOptions& options);
  virtual absl::StatusOr<Layer> LoadLayer(const LayerName& layer, const CallOptions& options);
  virtual absl::Status UnloadLayer(const LayerName& layer, const CallOptions& options);

  virtual absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options);
  virtual void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done);
  virtual absl::StatusOr<Health> CheckHealth(const std::string& service, const CallOptions& options);
};

// A connection to a server over gRPC, with retries and limits checked before sending. Does not wait for the server: it
// need not be there yet. INVALID_ARGUMENT names the option at fault; NOT_FOUND: a certificate file that cannot be read.
absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(const ClientOptions& options);

}  // namespace triad::client
