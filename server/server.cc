#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/fast_attention.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/reference_attention.h"
#include "core/base/clock.h"
#include "core/base/cpu.h"
#include "core/base/mutex.h"
#include "server/attention_service.h"
#include "server/http_pages.h"
#include "server/layer_directory.h"
#include "server/layer_loader.h"
#include "server/layer_service.h"
#include "server/layer_source.h"
#include "server/layer_store.h"
#include "server/metrics.h"
#include "server/server_info.h"
#include "server/serving_context.h"
#include "server/transport.h"
#include "server/warm_up.h"

namespace triad {
namespace {

// How long new calls are still answered with UNAVAILABLE after the last accepted one has been answered. gRPC drops
// calls that arrive once it shuts down, and their clients see CANCELLED; those who have just been answered and send the
// next request at once should hear why they are refused, and back off.
constexpr absl::Duration kLameDuck = absl::Milliseconds(250);

// Then connections get this long to read their last replies, which may say why there is no better one, and to close by
// themselves; open health watches never do.
constexpr absl::Duration kCloseGrace = absl::Milliseconds(500);

void WaitUntil(Time time) {
  Mutex mu;
  CondVar never;
  MutexLock lock(mu);
  while (RealClock().Now() < time) RealClock().WaitUntil(never, mu, time);
}

struct Cpu {
  CpuBudget budget;
  InstructionSet detected = InstructionSet::kGeneric;
  InstructionSet used = InstructionSet::kGeneric;
};

absl::StatusOr<Cpu> DecideCpu(const ServerOptions& options) {
  Cpu cpu{.budget = ReadCpuBudget(), .detected = DetectInstructionSet()};
  if (options.threads > 0)
    cpu.budget = {.threads = options.threads, .reason = absl::StrCat("--threads=", options.threads)};
  absl::StatusOr<InstructionSet> used = ChooseInstructionSet(options, cpu.detected);
  if (!used.ok()) return used.status();
  cpu.used = *used;
  return cpu;
}

absl::StatusOr<std::unique_ptr<AttentionKernel>> MakeFastKernel(InstructionSet isa, KernelChoice choice) {
  absl::StatusOr<std::unique_ptr<FastAttention>> fast = FastAttention::Create(isa, choice);
  if (!fast.ok()) return fast.status();
  return std::unique_ptr<AttentionKernel>(*std::move(fast));
}

// What --layers names, or all that there are.
absl::StatusOr<std::vector<LayerChoice>> ChooseLayers(const ServerOptions& options) {
  std::vector<LayerChoice> choices;
  if (options.layer_dir.empty()) return choices;
  for (const std::string& text : options.layers) {
    absl::StatusOr<LayerChoice> choice = ParseLayerChoice("--layers", text);
    if (!choice.ok()) return choice.status();
    choices.push_back(*std::move(choice));
  }
  if (!options.layers.empty()) return choices;
  absl::StatusOr<std::vector<std::string>> names = ListLayerNames(options.layer_dir);
  if (!names.ok()) return absl::Status(names.status().code(), absl::StrCat("--layer_dir: ", names.status().message()));
  for (std::string& name : *names) choices.push_back({.name = std::move(name)});
  return choices;
}

std::string ConfigText(const ServerOptions& options) {
  std::string text;
  for (const auto& [flag, value] : DescribeServerOptions(options)) absl::StrAppend(&text, "--", flag, "=", value, "\n");
  return text;
}

}  // namespace

// Members stand in the order they are made; the destructor takes them apart in the order that its comments give.
class Server::Impl {
 public:
  Impl(ServerOptions options, Log& log)
      : options_(std::move(options)),
        log_(log),
        ledger_({.max_bytes = options_.max_in_flight_bytes,
                 .max_peer_requests = options_.max_peer_in_flight_requests,
                 .max_peer_bytes = options_.max_peer_in_flight_bytes}),
        held_bytes_(MostHeldBytesOf(options_)),
        streams_(options_.max_streams) {}
  ~Impl();

  absl::Status Start(std::unique_ptr<AttentionKernel> kernel);
  void BeginDrain();
  bool Drain();

  const std::vector<std::string>& addresses() const { return transport_->addresses(); }
  const std::string& http_address() const {
    static const std::string none;
    return http_ == nullptr ? none : http_->address();
  }
  int64_t in_flight_requests() const { return ledger_.requests(); }

 private:
  LayerHost MakeLayerHost() const { return {.isa = cpu_.used, .kernel = *kernel_}; }
  absl::Status MakeParts(std::unique_ptr<AttentionKernel> kernel);
  absl::Status StartHttp();
  absl::Status LoadLayers();
  absl::Status StartServing();
  void LogStart() const;

  const ServerOptions options_;
  Log& log_;
  std::atomic<bool> is_ready_{false};  // /readyz
  Cpu cpu_;                            // constant from Start on, as all below

  InFlightLedger ledger_;
  HeldBytes held_bytes_;
  StreamRegistry streams_;
  const ReferenceAttention reference_;
  std::unique_ptr<AttentionKernel> kernel_;
  BuildInfo build_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Scheduler> scheduler_;
  LayerStore layers_;
  std::unique_ptr<LayerLoader> loader_;
  std::optional<ServingContext> context_;
  std::shared_ptr<grpc::Service> attention_service_;
  std::shared_ptr<grpc::Service> layer_service_;
  std::unique_ptr<HttpPages> http_;
  std::unique_ptr<Transport> transport_;
};

absl::Status Server::Impl::Start(std::unique_ptr<AttentionKernel> kernel) {
  const bool is_own_kernel = kernel == nullptr;
  if (absl::Status status = MakeParts(std::move(kernel)); !status.ok()) return status;
  if (absl::Status status = StartHttp(); !status.ok()) return status;
  if (is_own_kernel) {
    if (absl::Status status = WarmUp(*context_, cpu_.budget.threads); !status.ok()) return status;
  }
  if (absl::Status status = LoadLayers(); !status.ok()) return status;
  if (absl::Status status = StartServing(); !status.ok()) return status;
  LogStart();
  return absl::OkStatus();
}

absl::Status Server::Impl::MakeParts(std::unique_ptr<AttentionKernel> kernel) {
  absl::StatusOr<Cpu> cpu = DecideCpu(options_);
  if (!cpu.ok()) return cpu.status();
  cpu_ = *std::move(cpu);
  kernel_ = std::move(kernel);
  if (kernel_ == nullptr) {
    absl::StatusOr<std::unique_ptr<AttentionKernel>> fast = MakeFastKernel(cpu_.used, KernelChoiceOf(options_));
    if (!fast.ok()) return fast.status();
    kernel_ = *std::move(fast);
  }
  build_ = {.version = std::string(ServerVersion()),
            .instruction_set = std::string(Name(cpu_.used)),
            .kernel = std::string(kernel_->name()),
            .onednn_version = OneDnnVersion()};
  absl::StatusOr<std::unique_ptr<Metrics>> metrics = Metrics::Create(build_);
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler =
      Scheduler::Create(SchedulerOptionsOf(options_, cpu_.budget.threads), RealClock(), metrics_.get());
  if (!scheduler.ok()) return scheduler.status();
  scheduler_ = *std::move(scheduler);
  absl::StatusOr<std::unique_ptr<LayerLoader>> loader = LayerLoader::Create(
      {.max_loads = options_.max_layer_loads, .max_weights_bytes = options_.max_layer_weights_bytes},
      MakeDirectorySource(options_.layer_dir, MakeLayerHost()), layers_);
  if (!loader.ok()) return loader.status();
  loader_ = *std::move(loader);
  context_.emplace(ServingContext{.kernels = {.limits = LimitsOf(options_),
                                              .max_reference_work = options_.max_reference_work,
                                              .max_head_sequences = options_.max_head_sequences,
                                              .fast = *kernel_,
                                              .reference = reference_},
                                  .scheduler = *scheduler_,
                                  .ledger = ledger_,
                                  .held_bytes = held_bytes_,
                                  .streams = streams_,
                                  .metrics = *metrics_,
                                  .clock = RealClock(),
                                  .layers = layers_,
                                  .loader = *loader_,
                                  .log = log_,
                                  .max_stream_items = options_.max_stream_items,
                                  .allow_layer_admin = options_.allow_layer_admin});
  layer_service_ = MakeLayerService(*context_);
  attention_service_ = MakeAttentionService(*context_, MakeServerInfo(build_, cpu_.budget.threads, options_));
  return absl::OkStatus();
}

absl::Status Server::Impl::StartHttp() {
  if (options_.http_listen.empty()) return absl::OkStatus();
  std::map<std::string, HttpPages::Make> pages;
  pages["/metrics"] = [this] {
    return HttpPage{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_->Text()};
  };
  pages["/healthz"] = [] { return HttpPage{.body = "ok\n"}; };
  pages["/readyz"] = [this] {
    return is_ready_ ? HttpPage{.body = "ready\n"} : HttpPage{.status = 503, .body = "not ready\n"};
  };
  pages["/configz"] = [this] { return HttpPage{.body = ConfigText(options_)}; };
  absl::StatusOr<std::unique_ptr<HttpPages>> http = HttpPages::Start(options_.http_listen, std::move(pages));
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  return absl::OkStatus();
}

absl::Status Server::Impl::LoadLayers() {
  if (options_.demo_layer) {
    absl::StatusOr<std::shared_ptr<const HostedLayer>> demo = MakeDemoLayer(MakeLayerHost());
    if (!demo.ok()) return absl::Status(demo.status().code(), absl::StrCat("--demo_layer: ", demo.status().message()));
    layers_.Publish({.name = kDemoLayerName, .version = kDemoLayerVersion, .layer = *std::move(demo)});
  }
  absl::StatusOr<std::vector<LayerChoice>> choices = ChooseLayers(options_);
  if (!choices.ok()) return choices.status();
  for (const LayerChoice& choice : *choices) {
    const absl::StatusOr<LoadedLayer> loaded = loader_->LoadNow(choice);
    if (!loaded.ok()) return loaded.status();
    if (options_.demo_layer && loaded->name == kDemoLayerName && loaded->version == kDemoLayerVersion) {
      return absl::FailedPreconditionError(
          "--demo_layer hosts a layer of that name and version already: give the folder another, or start with "
          "--demo_layer=false; was demo@1");
    }
  }
  return absl::OkStatus();
}

absl::Status Server::Impl::StartServing() {
  metrics_->WatchLoad(*scheduler_, ledger_, layers_);
  absl::StatusOr<std::unique_ptr<Transport>> transport =
      Transport::Start(options_, {{kAttentionServiceName, *attention_service_}, {kLayerServiceName, *layer_service_}});
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  is_ready_ = true;
  return absl::OkStatus();
}

void Server::Impl::LogStart() const {
  log_.Info("configuration", DescribeServerOptions(options_));
  log_.Info("serving", {{"version", build_.version},
                        {"kernel", build_.kernel},
                        {"instruction_set", build_.instruction_set},
                        {"instruction_set_detected", std::string(Name(cpu_.detected))},
                        {"onednn_version", build_.onednn_version},
                        {"threads", absl::StrCat(cpu_.budget.threads)},
                        {"threads_reason", cpu_.budget.reason}});
  for (const LoadedLayer& layer : layers_.List()) {
    log_.Info("layer", {{"name", layer.name},
                        {"version", absl::StrCat(layer.version)},
                        {"weights_bytes", absl::StrCat(layer.layer->weights_bytes())}});
  }
  // Scripts wait for these lines. Last, because they promise that the server is ready.
  if (http_ != nullptr) log_.Info(absl::StrCat("listening on http://", http_->address()));
  for (const std::string& address : transport_->addresses()) log_.Info(absl::StrCat("listening on ", address));
}

void Server::Impl::BeginDrain() {
  is_ready_ = false;
  transport_->SetNotServing();
  ledger_.BeginDrain();
  loader_->BeginDrain();
  streams_.BeginDrain();
}

bool Server::Impl::Drain() {
  const Time deadline = RealClock().Now() + absl::ToChronoNanoseconds(options_.drain_timeout);
  log_.Info("draining", {{"in_flight_requests", absl::StrCat(ledger_.requests())}});
  BeginDrain();
  const bool is_answered = ledger_.WaitIdle(RealClock(), deadline);
  if (is_answered) {
    WaitUntil(std::min(deadline, RealClock().Now() + absl::ToChronoNanoseconds(kLameDuck)));
  } else {
    log_.Warning("drain_timeout passed; ending what is left",
                 {{"in_flight_requests", absl::StrCat(ledger_.requests())}});
    // Both answer UNAVAILABLE, while there is a transport for it; what that cancels itself would see CANCELLED.
    loader_->Abandon();
    scheduler_->Stop();
  }
  transport_->Shutdown(kCloseGrace);
  log_.Info("drained", {{"everything_answered", is_answered ? "true" : "false"}});
  return is_answered;
}

Server::Impl::~Impl() {
  // Pages first: they look at everything. Then the transport, which cancels the calls that are left and waits for their
  // reactions; the scheduler must still be there for that. Its threads go next, because they use the kernels.
  http_.reset();
  if (loader_ != nullptr) loader_->Abandon();  // or the transport would wait for every load
  transport_.reset();
  loader_.reset();
  scheduler_.reset();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, Log& log,
                                                      std::unique_ptr<AttentionKernel> kernel) {
  absl::StatusOr<ServerOptions> resolved = ResolveServerOptions(options);
  if (!resolved.ok()) return resolved.status();
  auto impl = std::make_unique<Impl>(*std::move(resolved), log);
  if (absl::Status status = impl->Start(std::move(kernel)); !status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
const std::vector<std::string>& Server::addresses() const { return impl_->addresses(); }
const std::string& Server::http_address() const { return impl_->http_address(); }
void Server::BeginDrain() { impl_->BeginDrain(); }
bool Server::Drain() { return impl_->Drain(); }
int64_t Server::in_flight_requests() const { return impl_->in_flight_requests(); }

}  // namespace triad
