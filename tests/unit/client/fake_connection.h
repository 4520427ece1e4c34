// A Connection that gives the answers it was told to give, and requests to give it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "triad/connection.h"

namespace triad::client {

// For one thread. Calls are answered at once, from within.
//
// Attempts of every kind but GetServerInfo and CheckHealth share one list of results to come and one of calls made:
// what decorators do with a call does not depend on its kind.
class FakeConnection final : public Connection {
 public:
  absl::StatusOr<AttendResponse> Attend(const AttendRequest&, const CallOptions& options) override {
    return Answer<AttendResponse>(options);
  }
  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    done(Attend(request, options));
  }
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions&) override {
    if (attend_stream == nullptr) return absl::UnavailableError("no stream");
    return std::move(attend_stream);
  }
  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest&, const CallOptions& options) override {
    return Answer<ForwardResponse>(options);
  }
  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) override {
    done(Forward(request, options));
  }
  absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions&) override {
    if (forward_stream == nullptr) return absl::UnavailableError("no stream");
    return std::move(forward_stream);
  }
  absl::StatusOr<std::vector<Layer>> ListLayers(const std::string&, const CallOptions& options) override {
    return Answer<std::vector<Layer>>(options);
  }
  absl::StatusOr<Layer> GetLayer(const LayerName&, const CallOptions& options) override {
    return Answer<Layer>(options);
  }
  absl::StatusOr<Layer> LoadLayer(const LayerName&, const CallOptions& options) override {
    return Answer<Layer>(options);
  }
  absl::Status UnloadLayer(const LayerName&, const CallOptions& options) override {
    return Answer<Layer>(options).status();
  }
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) override {
    info_calls.push_back(options);
    return info;
  }
  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    done(GetServerInfo(options));
  }
  absl::StatusOr<Health> CheckHealth(const std::string&, const CallOptions&) override {
    ++health_calls;
    return health;
  }

  std::deque<absl::Status> results;  // of the next attempts; then OK
  std::function<void()> on_attempt;  // called in every attempt
  absl::StatusOr<ServerInfo> info = ServerInfo();
  absl::StatusOr<Health> health = Health::kServing;
  std::unique_ptr<AttendStream> attend_stream;
  std::unique_ptr<ForwardStream> forward_stream;

  std::vector<CallOptions> calls;  // options of each attempt
  std::vector<CallOptions> info_calls;
  int health_calls = 0;

 private:
  template <class Response>
  absl::StatusOr<Response> Answer(const CallOptions& options) {
    calls.push_back(options);
    if (on_attempt) on_attempt();
    if (results.empty()) return Response();
    const absl::Status result = std::move(results.front());
    results.pop_front();
    if (!result.ok()) return result;
    return Response();
  }
};

// Owns the values of a small request: batch 1, q_len = kv_len = 2, one head of 4.
struct SmallProblem {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<uint8_t> keep = {1, 0};

  TensorView Tensor() const { return TensorView::Float32(values, {1, 2, 1, 4}); }
  AttendRequest Request() const { return {.query = Tensor(), .key = Tensor(), .value = Tensor()}; }
  // The same values as hidden states of 4.
  ForwardRequest HiddenStates() const { return {.layer = "demo", .input = TensorView::Float32(values, {1, 2, 4})}; }
};

}  // namespace triad::client
