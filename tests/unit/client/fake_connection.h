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
class FakeConnection final : public Connection {
 public:
  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    attend_calls.push_back(options);
    if (on_attend) on_attend();
    if (attend_results.empty()) return AttendResponse();
    absl::StatusOr<AttendResponse> result = std::move(attend_results.front());
    attend_results.pop_front();
    return result;
  }
  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    done(Attend(request, options));
  }
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions&) override {
    if (stream == nullptr) return absl::UnavailableError("no stream");
    return std::move(stream);
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

  std::deque<absl::StatusOr<AttendResponse>> attend_results;  // the next answers; then empty ones
  std::function<void()> on_attend;                            // called in every attempt
  absl::StatusOr<ServerInfo> info = ServerInfo();
  absl::StatusOr<Health> health = Health::kServing;
  std::unique_ptr<AttendStream> stream;

  std::vector<CallOptions> attend_calls;  // options of each attempt
  std::vector<CallOptions> info_calls;
  int health_calls = 0;
};

// Owns the values of a small request: batch 1, q_len = kv_len = 2, one head of 4.
struct SmallProblem {
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<uint8_t> keep = {1, 0};

  TensorView Tensor() const { return TensorView::Float32(values, {1, 2, 1, 4}); }
  AttendRequest Request() const { return {.query = Tensor(), .key = Tensor(), .value = Tensor()}; }
};

}  // namespace triad::client
