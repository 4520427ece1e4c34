// The client of a Triad server. Start here.
//
//   absl::StatusOr<Client> client = Client::Create({.target = "127.0.0.1:8470"});
//   absl::StatusOr<AttendResponse> answer = client->Attend({.query = q, .key = k, .value = v});
//   absl::StatusOr<ForwardResponse> mixed = client->Forward({.layer = "minilm/0", .input = hidden_states});
//
// Other headers: tensor.h (views and answers), attend.h and forward.h (the requests), options.h and retry.h (what can
// be set), stream.h, layers.h, server_info.h, connection.h (what to fake in tests), and two that are worth a look when
// it must be fast: allocator.h (messages of a megabyte and more) and lock_checks.h (small ones).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/connection.h"
#include "triad/forward.h"
#include "triad/layers.h"
#include "triad/options.h"
#include "triad/server_info.h"
#include "triad/stream.h"

namespace triad::client {

// Calls one server, or several behind one address.
//
// Cost. Creating one is dear (connections, their threads); copying one is cheap, and copies share everything. Make one
// per target and keep it.
//
// Threads. All functions may be called from any thread at the same time, on one Client or on copies.
//
// Deadlines. A call ends within CallOptions::timeout, 30 s unless set.
//
// Retries. By retry.h, within the deadline. A stream's items are not retried.
//
// Memory. Tensors of a request are sent from where they lie if they have an owner, see tensor.h; else they are
// borrowed, and copied once into what the transport sends. An answer's bytes are moved out of the message, not copied.
//
// Limits. A request is checked before it is sent: bytes against shapes, then the client's own max_message_bytes, then
// the server's limits, which the first call asks the server for (one small call more). They are kept, and asked for
// again before they refuse a request, unless that was done within the last second: a server may come back with others.
// The message names the limit, whose it is, and both numbers. What depends on a hosted layer's sizes (its widths, and
// so the size of its answer) is left to the server.
//
// Errors. INVALID_ARGUMENT: the request, found here or by the server; the message names field, rule and value.
// NOT_FOUND: no such layer or version.
// UNIMPLEMENTED: the server is older than an option of the request. RESOURCE_EXHAUSTED, UNAVAILABLE: after the retries.
// DEADLINE_EXCEEDED. CANCELLED. Others are the transport's.
//
// End. Calls in flight keep what they need alive: destroying the Client neither waits for them nor cancels them, and
// every callback still runs once.
class Client {
 public:
  // Does not wait for the server; see MakeConnection.
  static absl::StatusOr<Client> Create(const ClientOptions& options = {});
  explicit Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  // Multi-head attention. Blocks until the answer is here. Borrows tensors without an owner until it returns.
  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options = {}) const {
    return connection_->Attend(request, options);
  }

  // The same without blocking. Tensors without an owner are borrowed until `done` is called; the request is copied.
  // `done` is called once, on a thread of gRPC's, never from within AttendAsync; it must not block, since gRPC has few
  // threads.
  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) const {
    connection_->AttendAsync(request, options, std::move(done));
  }

  // Opens a stream of requests. Blocks at most for the first call's question about limits.
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options = {}) const {
    return connection_->OpenAttendStream(options);
  }

  // A hosted layer applied to hidden states. As Attend, AttendAsync and OpenAttendStream.
  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options = {}) const {
    return connection_->Forward(request, options);
  }
  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) const {
    connection_->ForwardAsync(request, options, std::move(done));
  }
  absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions& options = {}) const {
    return connection_->OpenForwardStream(options);
  }

  // The loaded versions of the layer `name`, or of all layers when it is empty: by name, then version. Blocks.
  absl::StatusOr<std::vector<Layer>> ListLayers(const std::string& name = "", const CallOptions& options = {}) const {
    return connection_->ListLayers(name, options);
  }

  // A loaded layer; without a version the highest. Blocks. NOT_FOUND: it is not loaded.
  absl::StatusOr<Layer> GetLayer(const LayerName& layer, const CallOptions& options = {}) const {
    return connection_->GetLayer(layer, options);
  }

  // Has the server load a version from its layer directory; without a version the highest there. Blocks until it
  // serves, so a large layer may need a longer timeout; one that has passed may leave the layer loaded. Retried only
  // when the server refused for load. PERMISSION_DENIED: the server does not allow administration; NOT_FOUND: there is
  // no such folder; FAILED_PRECONDITION: it does not hold a valid layer, and the message says why.
  absl::StatusOr<Layer> LoadLayer(const LayerName& layer, const CallOptions& options = {}) const {
    return connection_->LoadLayer(layer, options);
  }

  // Takes a version, which must be named, out of service. Blocks. Retried as LoadLayer. PERMISSION_DENIED as above;
  // NOT_FOUND: it is not loaded.
  absl::Status UnloadLayer(const LayerName& layer, const CallOptions& options = {}) const {
    return connection_->UnloadLayer(layer, options);
  }

  // What the server is and what it accepts. Blocks.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options = {}) const {
    return connection_->GetServerInfo(options);
  }

  // grpc.health.v1 Check of `service`; "" is the server as a whole. Blocks. NOT_FOUND: no such service. Not retried, so
  // that the answer is about now.
  absl::StatusOr<Health> CheckHealth(const std::string& service = "", const CallOptions& options = {}) const {
    return connection_->CheckHealth(service, options);
  }

 private:
  std::shared_ptr<Connection> connection_;  // shared by copies of this Client and by calls in flight; never null
};

}  // namespace triad::client
