// The client of a Triad server. Start here.
//
//   absl::StatusOr<Client> client = Client::Create({.target = "127.0.0.1:8470"});
//   absl::StatusOr<AttendResponse> answer = client->Attend({.query = q, .key = k, .value = v});
//
// Other headers: tensor.h (views and answers), attend.h (the request), options.h and retry.h (what can be set),
// attend_stream.h, server_info.h, connection.h (what to fake in tests), allocator.h (worth a look for messages of a
// megabyte and more).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/attend_stream.h"
#include "triad/connection.h"
#include "triad/options.h"
#include "triad/server_info.h"

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
// Memory. Tensors of a request are borrowed, and copied once: into the message that protobuf serialises. An answer's
// bytes are moved out of the message, not copied.
//
// Limits. A request is checked before it is sent: bytes against shapes, then the client's own max_message_bytes, then
// the server's limits, which the first call asks the server for (one small call more; kept as long as the connection).
// The message names the limit, whose it is, and both numbers.
//
// Errors. INVALID_ARGUMENT: the request, found here or by the server; the message names field, rule and value.
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

  // Multi-head attention. Blocks until the answer is here. Borrows the request's tensors until it returns.
  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options = {}) const {
    return connection_->Attend(request, options);
  }

  // The same without blocking. The request's tensors are borrowed until `done` is called; the request itself is copied.
  // `done` is called once, on a thread of gRPC's, never from within AttendAsync; it must not block, since gRPC has few
  // threads.
  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) const {
    connection_->AttendAsync(request, options, std::move(done));
  }

  // Opens a stream of requests. Blocks at most for the first call's question about limits.
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options = {}) const {
    return connection_->OpenAttendStream(options);
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
