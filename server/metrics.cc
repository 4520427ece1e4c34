#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <atomic>
#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/in_flight_ledger.h"
#include "server/layer_store.h"
#include "server/metrics_process.h"

namespace triad {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::array kMethods = {Method::kAttend,        Method::kAttendStream,  Method::kForward,
                                 Method::kForwardStream, Method::kGetServerInfo, Method::kListLayers,
                                 Method::kGetLayer,      Method::kLoadLayer,     Method::kUnloadLayer};
constexpr int kCodes = 17;  // OK (0) to UNAUTHENTICATED (16)
constexpr std::array kRefusals = {Refusal::kBytes,    Refusal::kTasks,       Refusal::kDraining, Refusal::kQueueTime,
                                  Refusal::kDeadline, Refusal::kWouldBeLate, Refusal::kPeer,     Refusal::kCancelled};

std::string Name(Method method) {
  switch (method) {
    case Method::kAttend:
      return "Attend";
    case Method::kAttendStream:
      return "AttendStream";
    case Method::kForward:
      return "Forward";
    case Method::kForwardStream:
      return "ForwardStream";
    case Method::kGetServerInfo:
      return "GetServerInfo";
    case Method::kListLayers:
      return "ListLayers";
    case Method::kGetLayer:
      return "GetLayer";
    case Method::kLoadLayer:
      return "LoadLayer";
    case Method::kUnloadLayer:
      return "UnloadLayer";
  }
  return "unknown";
}

std::string Name(Refusal refusal) {
  switch (refusal) {
    case Refusal::kBytes:
      return "bytes";
    case Refusal::kTasks:
      return "requests";
    case Refusal::kDraining:
      return "draining";
    case Refusal::kQueueTime:
      return "queue_time";
    case Refusal::kDeadline:
      return "deadline";
    case Refusal::kWouldBeLate:
      return "would_be_late";
    case Refusal::kPeer:
      return "peer";
    case Refusal::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// 10 us to 50 s in steps of 1, 2.5, 5: a tiny request takes 100 us, the longest wait is max_queue_time.
Histogram::BucketBoundaries SecondsBuckets() {
  Histogram::BucketBoundaries buckets;
  for (double decade = 1e-5; decade < 50; decade *= 10) {
    for (double step : {1.0, 2.5, 5.0}) buckets.push_back(decade * step);
  }
  return buckets;
}

// Powers of two up to `last`.
Histogram::BucketBoundaries PowerBuckets(double last) {
  Histogram::BucketBoundaries buckets;
  for (double bound = 1; bound <= last; bound *= 2) buckets.push_back(bound);
  return buckets;
}

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(const BuildInfo& build)
      : total_seconds(
            AddHistogram("triad_request_seconds", "Whole message received to reply handed over.", SecondsBuckets())),
        queue_seconds(AddHistogram("triad_queue_seconds", "Accepted to first work item.", SecondsBuckets())),
        compute_seconds(AddHistogram("triad_compute_seconds", "First to last work item.", SecondsBuckets())),
        reply_seconds(
            AddHistogram("triad_reply_seconds", "Answered to reply taken by the transport.", SecondsBuckets())),
        batch_requests(AddHistogram("triad_batch_requests", "Requests in the list when one joined, itself included.",
                                    PowerBuckets(4096))),
        batch_tokens(AddHistogram("triad_batch_tokens",
                                  "Query tokens in the list when a request joined, its own included.",
                                  PowerBuckets(1 << 20))),
        forward_batch_requests(AddHistogram("triad_forward_batch_requests",
                                            "Forward requests that shared a layer's projections.", PowerBuckets(4096))),
        forward_batch_tokens(
            AddHistogram("triad_forward_batch_tokens", "Tokens of those requests together.", PowerBuckets(1 << 20))),
        flop_executed(AddCounter("triad_flop_executed_total", "Floating-point operations executed, padding included.")),
        flop_needed(AddCounter("triad_flop_needed_total", "Floating-point operations that the answers needed.")),
        request_bytes(AddCounter("triad_request_bytes_total", "Bytes of requests, serialized.")),
        reply_bytes(AddCounter("triad_reply_bytes_total", "Bytes of replies, serialized.")),
        open_streams(AddGauge("triad_open_streams", "Streams open now.")),
        queued_requests(AddGauge("triad_queued_requests", "Requests that wait for room in the list.")),
        listed_requests(AddGauge("triad_listed_requests", "Requests in the list, running ones included.")),
        computing_bytes(AddGauge("triad_computing_bytes", "Bytes of requests and replies, queued or in the list.")),
        in_flight_requests(AddGauge("triad_in_flight_requests", "Requests accepted and not yet handed over.")),
        in_flight_peers(AddGauge("triad_in_flight_peers", "Client addresses that they come from.")),
        in_flight_bytes(AddGauge("triad_in_flight_bytes", "Their bytes and those of their replies.")),
        loaded_layers(AddGauge("triad_loaded_layers", "Versions of layers that serve.")),
        layer_weights_bytes(AddGauge("triad_layer_weights_bytes",
                                     "Memory of packed weights, of unloaded layers that requests hold too.")) {
    auto& requests_family = prometheus::BuildCounter()
                                .Name("triad_requests_total")
                                .Help("Answered requests; an item of a stream counts as one.")
                                .Register(registry);
    for (Method method : kMethods) {
      for (int code = 0; code < kCodes; ++code) {
        requests[static_cast<size_t>(method)][static_cast<size_t>(code)] = &requests_family.Add(
            {{"method", Name(method)}, {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
      }
    }
    auto& refusals_family = prometheus::BuildCounter()
                                .Name("triad_refusals_total")
                                .Help("Requests that were not computed to their end, by reason.")
                                .Register(registry);
    for (Refusal refusal : kRefusals) {
      refusals[static_cast<size_t>(refusal)] = &refusals_family.Add({{"reason", Name(refusal)}});
    }
    load_refusals = &refusals_family.Add({{"reason", "layer_loads"}});
    prometheus::BuildGauge()
        .Name("triad_build_info")
        .Help("Always 1; the labels say what runs here.")
        .Register(registry)
        .Add({{"version", build.version},
              {"instruction_set", build.instruction_set},
              {"kernel", build.kernel},
              {"onednn_version", build.onednn_version}})
        .Set(1);
  }

  prometheus::Registry registry;  // first: owns what the references below name
  Histogram& total_seconds;
  Histogram& queue_seconds;
  Histogram& compute_seconds;
  Histogram& reply_seconds;
  Histogram& batch_requests;
  Histogram& batch_tokens;
  Histogram& forward_batch_requests;
  Histogram& forward_batch_tokens;
  Counter& flop_executed;
  Counter& flop_needed;
  Counter& request_bytes;
  Counter& reply_bytes;
  Gauge& open_streams;
  Gauge& queued_requests;
  Gauge& listed_requests;
  Gauge& computing_bytes;
  Gauge& in_flight_requests;
  Gauge& in_flight_peers;
  Gauge& in_flight_bytes;
  Gauge& loaded_layers;
  Gauge& layer_weights_bytes;
  std::array<std::array<Counter*, kCodes>, kMethods.size()> requests{};
  std::array<Counter*, kRefusals.size()> refusals{};
  Counter* load_refusals = nullptr;

  std::atomic<const Scheduler*> scheduler{nullptr};
  std::atomic<const InFlightLedger*> ledger{nullptr};
  std::atomic<const LayerStore*> layers{nullptr};

 private:
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const Histogram::BucketBoundaries& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
  Counter& AddCounter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }
  Gauge& AddGauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
};

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Create(const BuildInfo& build) {
  try {
    return std::unique_ptr<Metrics>(new Metrics(std::make_unique<Impl>(build)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("prometheus-cpp: ", error.what()));
  }
}

Metrics::Metrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Metrics::~Metrics() = default;

void Metrics::OnAnswered(const AnsweredRequest& request) {
  const auto method = static_cast<size_t>(request.method);
  const auto code = static_cast<size_t>(request.code);
  impl_->requests[method][code < kCodes ? code : static_cast<size_t>(absl::StatusCode::kUnknown)]->Increment();
  impl_->total_seconds.Observe(Seconds(request.total));
  impl_->request_bytes.Increment(static_cast<double>(request.request_bytes));
  impl_->reply_bytes.Increment(static_cast<double>(request.reply_bytes));
}

void Metrics::OnComputed(const ComputedRequest& request) {
  impl_->queue_seconds.Observe(Seconds(request.queue));
  impl_->compute_seconds.Observe(Seconds(request.compute));
  impl_->flop_executed.Increment(request.flop_executed);
  impl_->flop_needed.Increment(request.flop_needed);
  if (request.batch_requests == 0) return;
  impl_->forward_batch_requests.Observe(static_cast<double>(request.batch_requests));
  impl_->forward_batch_tokens.Observe(static_cast<double>(request.batch_tokens));
}

void Metrics::OnReplied(Duration reply) { impl_->reply_seconds.Observe(Seconds(reply)); }
void Metrics::OnLoadRefused() { impl_->load_refusals->Increment(); }
void Metrics::OnStreamOpened() { impl_->open_streams.Increment(); }
void Metrics::OnStreamClosed() { impl_->open_streams.Decrement(); }

void Metrics::OnListed(int64_t tasks, int64_t tokens) {
  if (impl_->scheduler == nullptr) return;
  impl_->batch_requests.Observe(static_cast<double>(tasks));
  impl_->batch_tokens.Observe(static_cast<double>(tokens));
}

void Metrics::OnRefused(Refusal reason) {
  if (impl_->scheduler == nullptr) return;
  impl_->refusals[static_cast<size_t>(reason)]->Increment();
}

void Metrics::WatchLoad(const Scheduler& scheduler, const InFlightLedger& in_flight, const LayerStore& layers) {
  impl_->scheduler = &scheduler;
  impl_->ledger = &in_flight;
  impl_->layers = &layers;
}

std::string Metrics::Text() const {
  if (const Scheduler* scheduler = impl_->scheduler) {
    const SchedulerLoad load = scheduler->load();
    impl_->queued_requests.Set(static_cast<double>(load.queued_tasks));
    impl_->listed_requests.Set(static_cast<double>(load.listed_tasks));
    impl_->computing_bytes.Set(static_cast<double>(load.in_flight_bytes));
  }
  if (const InFlightLedger* ledger = impl_->ledger) {
    impl_->in_flight_requests.Set(static_cast<double>(ledger->requests()));
    impl_->in_flight_peers.Set(static_cast<double>(ledger->peers()));
    impl_->in_flight_bytes.Set(static_cast<double>(ledger->bytes()));
  }
  if (const LayerStore* layers = impl_->layers) {
    const LayerStore::Totals totals = layers->totals();
    impl_->loaded_layers.Set(static_cast<double>(totals.layers));
    impl_->layer_weights_bytes.Set(static_cast<double>(totals.weights_bytes));
  }
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (prometheus::MetricFamily& family : CollectProcessMetrics()) families.push_back(std::move(family));
  std::ostringstream page;
  prometheus::TextSerializer().Serialize(page, families);
  return page.str();
}

}  // namespace triad
