// A server that a test plays.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/tools/tool.h"
#include "triad/connection.h"

namespace triad::tools {

// Answers each Attend and Forward with zeros of the right shapes, or with what the test sets, and keeps what it was
// sent.
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
    response.timings = {
        .queue = absl::Microseconds(12), .compute = absl::Microseconds(345), .total = absl::Milliseconds(1)};
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
  absl::StatusOr<client::ForwardResponse> Forward(const client::ForwardRequest& request,
                                                  const client::CallOptions& options) override {
    forward_requests.push_back(request);
    sent_input.assign(reinterpret_cast<const char*>(request.input.data.data()), request.input.data.size());
    timeout = options.timeout;
    if (!failure.ok()) return failure;
    return AnswerTo(request);
  }
  absl::StatusOr<std::unique_ptr<client::ForwardStream>> OpenForwardStream(const client::StreamOptions&) override {
    return std::make_unique<FakeForwardStream>(*this);
  }
  absl::StatusOr<std::vector<client::Layer>> ListLayers(const std::string& name,
                                                        const client::CallOptions& options) override {
    asked_layer = {.name = name};
    timeout = options.timeout;
    if (!failure.ok()) return failure;
    return std::vector<client::Layer>{layer};
  }
  absl::StatusOr<client::Layer> GetLayer(const client::LayerName& name, const client::CallOptions&) override {
    return AnswerLayer("get", name);
  }
  absl::StatusOr<client::Layer> LoadLayer(const client::LayerName& name, const client::CallOptions&) override {
    return AnswerLayer("load", name);
  }
  absl::Status UnloadLayer(const client::LayerName& name, const client::CallOptions&) override {
    return AnswerLayer("unload", name).status();
  }

  // Zeros of the right shapes, from a layer of `layer.heads` heads as wide as its input.
  client::ForwardResponse AnswerTo(const client::ForwardRequest& request) const {
    const client::Shape& input = request.input.shape;  // as in TOKENS_HEADS
    const int64_t kv_len = request.context ? request.context->shape[1] : input[1];
    client::ForwardResponse response;
    response.output = Zeros(request.input.dtype, input);
    if (request.return_lse) response.lse = Zeros(client::DataType::kFloat32, {input[0], layer.heads, input[1]});
    if (request.return_weights) {
      response.weights = Zeros(client::DataType::kFloat32, {input[0], layer.heads, input[1], kv_len});
    }
    response.version = layer.version;
    response.timings = {.queue = absl::Microseconds(12),
                        .compute = absl::Microseconds(345),
                        .total = absl::Milliseconds(1),
                        .batch_requests = 3,
                        .batch_tokens = 21};
    return response;
  }

  absl::Status failure;  // what every call returns, unless OK
  client::ServerInfo info;
  client::Health health = client::Health::kServing;

  client::Layer layer = {.name = "demo", .version = 1, .model_dim = 512, .heads = 8, .kv_heads = 8};  // the only one

  std::vector<client::AttendRequest> requests;  // their tensors are gone by the time a test looks
  std::string sent_query;                       // bytes of the last one's query
  std::vector<client::ForwardRequest> forward_requests;
  std::string sent_input;  // bytes of the last one's hidden states
  client::LayerName asked_layer;
  std::string asked_about_layer;  // "get", "load" or "unload"
  absl::Duration timeout;
  std::string asked_service;

 private:
  // Answers in the order of the items.
  class FakeForwardStream final : public client::ForwardStream {
   public:
    explicit FakeForwardStream(FakeConnection& connection) : connection_(connection) {}
    absl::Status Send(uint64_t id, const client::ForwardRequest& request, const client::ItemOptions&) override {
      if (connection_.failure.ok()) answers_.push_back({id, connection_.AnswerTo(request)});
      return connection_.failure;
    }
    absl::Status Cancel(uint64_t) override { return absl::OkStatus(); }
    absl::Status HalfClose() override { return absl::OkStatus(); }
    std::optional<client::ForwardAnswer> Next() override {
      if (answers_.empty()) return std::nullopt;
      client::ForwardAnswer answer = std::move(answers_.front());
      answers_.pop_front();
      return answer;
    }
    absl::Status Finish() override { return connection_.failure; }

   private:
    FakeConnection& connection_;
    std::deque<client::ForwardAnswer> answers_;
  };

  absl::StatusOr<client::Layer> AnswerLayer(const std::string& call, const client::LayerName& name) {
    asked_about_layer = call;
    asked_layer = name;
    if (!failure.ok()) return failure;
    return layer;
  }

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
  std::string failing_target;         // where there is no server

  World world() {
    return {.out = out, .err = err, .show_progress = false, .connect = [this](const client::ClientOptions& options) {
              target = options.target;
              connection->failure = target == failing_target ? absl::UnavailableError("nobody") : connection->failure;
              return absl::StatusOr<std::shared_ptr<client::Connection>>(connection);
            }};
  }
  int Run(std::vector<std::string> arguments) { return RunTriad(std::move(arguments), world()); }
};

}  // namespace triad::tools
