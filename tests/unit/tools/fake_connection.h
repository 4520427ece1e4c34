// A server that a test plays.
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/tools/tool.h"
#include "triad/connection.h"

namespace triad::tools {

// Answers each Attend with zeros of the right shapes, or with what the test sets, and keeps what it was sent.
class FakeConnection final : public client::Connection {
 public:
  absl::StatusOr<client::AttendResponse> Attend(const client::AttendRequest& request,
                                                const client::CallOptions& options) override {
    requests.push_back(request);
    sent_query.assign(reinterpret_cast<const char*>(request.query.data.data()), request.query.data.size());
    timeout = options.timeout;
    if (!failure.ok()) return failure;
    const client::Shape& q = request.query.shape;  // as in TOKENS_HEADS
    client::AttendResponse response;
    response.output = Zeros(request.query.dtype, {q[0], q[1], q[2], request.value.shape.back()});
    if (request.return_lse) response.lse = Zeros(client::DataType::kFloat32, {q[0], q[2], q[1]});
    if (request.return_weights) {
      response.weights = Zeros(client::DataType::kFloat32, {q[0], q[2], q[1], request.key.shape[1]});
    }
    response.timings = {absl::Microseconds(12), absl::Microseconds(345), absl::Milliseconds(1)};
    return response;
  }
  absl::StatusOr<client::ServerInfo> GetServerInfo(const client::CallOptions& options) override {
    timeout = options.timeout;
    if (!failure.ok()) return failure;
    return info;
  }
  absl::StatusOr<client::Health> CheckHealth(const std::string& service, const client::CallOptions&) override {
    asked_service = service;
    if (!failure.ok()) return failure;
    return health;
  }
  void AttendAsync(const client::AttendRequest& request, const client::CallOptions& options,
                   client::AttendCallback done) override {
    done(Attend(request, options));
  }
  void GetServerInfoAsync(const client::CallOptions& options, client::ServerInfoCallback done) override {
    done(GetServerInfo(options));
  }
  absl::StatusOr<std::unique_ptr<client::AttendStream>> OpenAttendStream(const client::StreamOptions&) override {
    return absl::UnimplementedError("the tool opens no streams");
  }

  absl::Status failure;  // what every call returns, unless OK
  client::ServerInfo info;
  client::Health health = client::Health::kServing;

  std::vector<client::AttendRequest> requests;  // their tensors are gone by the time a test looks
  std::string sent_query;                       // bytes of the last one's query
  absl::Duration timeout;
  std::string asked_service;

 private:
  static client::Tensor Zeros(client::DataType dtype, client::Shape shape) {
    int64_t bytes = client::ByteSize(dtype);
    for (int64_t size : shape) bytes *= size;
    return client::Tensor(dtype, std::move(shape), std::string(static_cast<size_t>(bytes), '\0'));
  }
};

// `triad` with a fake behind it.
struct ToolRun {
  std::shared_ptr<FakeConnection> connection = std::make_shared<FakeConnection>();
  std::ostringstream out;
  std::ostringstream err;
  std::optional<std::string> target;  // that was connected to

  World world() {
    return {.out = out, .err = err, .show_progress = false, .connect = [this](const client::ClientOptions& options) {
              target = options.target;
              return absl::StatusOr<std::shared_ptr<client::Connection>>(connection);
            }};
  }
  int Run(std::vector<std::string> arguments) { return RunTriad(std::move(arguments), world()); }
};

}  // namespace triad::tools
