// What /metrics shows. Everything is registered at start and held by reference; counting costs well under a
// microsecond.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/batching/scheduler.h"

namespace triad {

class InFlightLedger;
class LayerStore;

// Methods that are counted; an item of a stream counts like a call of its own.
enum class Method {
  kAttend,
  kAttendStream,
  kForward,
  kForwardStream,
  kGetServerInfo,
  kListLayers,
  kGetLayer,
  kLoadLayer,
  kUnloadLayer
};

// Constant labels of triad_build_info.
struct BuildInfo {
  std::string version;
  std::string instruction_set;
  std::string kernel;
  std::string onednn_version;
};

// One request at its end.
struct AnsweredRequest {
  Method method = Method::kAttend;
  absl::StatusCode code = absl::StatusCode::kOk;
  Duration total{};  // whole message received to reply handed over
  int64_t request_bytes = 0;
  int64_t reply_bytes = 0;
};

// One request that was computed to its end.
struct ComputedRequest {
  Duration queue{};          // accepted to first work item
  Duration compute{};        // first to last work item
  double flop_executed = 0;  // by its items
  double flop_needed = 0;    // by the answer
  // Of the requests that shared a layer's projections, told by one of them; 0: this is another, or no Forward.
  int64_t batch_requests = 0;
  int64_t batch_tokens = 0;
};

// Thread-safe. Never blocks for longer than another count takes.
class Metrics final : public SchedulerObserver {
 public:
  // INTERNAL: prometheus-cpp refused a name or label.
  static absl::StatusOr<std::unique_ptr<Metrics>> Create(const BuildInfo& build);
  ~Metrics() override;

  void OnAnswered(const AnsweredRequest& request);
  void OnComputed(const ComputedRequest& request);
  // `reply`: answered, with whatever code, to taken by the transport, which a slow reader stretches.
  void OnReplied(Duration reply);
  // A LoadLayer beyond --max_layer_loads; shown beside the Refusals.
  void OnLoadRefused();
  void OnStreamOpened();
  void OnStreamClosed();

  // SchedulerObserver.
  void OnListed(int64_t tasks, int64_t tokens) override;
  void OnRefused(Refusal reason) override;

  // Where the gauges of load come from at every scrape; all outlive the last Text(). What the scheduler reports
  // before, of the warm-up, is not counted.
  void WatchLoad(const Scheduler& scheduler, const InFlightLedger& in_flight, const LayerStore& layers);

  // The page, in Prometheus' text format. Slow (milliseconds): not for the request path.
  std::string Text() const;

 private:
  class Impl;
  explicit Metrics(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace triad
