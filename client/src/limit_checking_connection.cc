#include "client/src/limit_checking_connection.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/src/attend_messages.h"
#include "client/src/check_request.h"
#include "client/src/forward_messages.h"
#include "client/src/stream_messages.h"

namespace triad::client {
namespace {

constexpr int64_t kNoFraming = 0;

// The rules, and the server's limits once they are known. Shared with calls and streams that outlive the connection.
class RequestChecker {
 public:
  RequestChecker(std::shared_ptr<Connection> server, const LimitOptions& options, std::shared_ptr<Runtime> runtime)
      : server_(std::move(server)), options_(options), runtime_(std::move(runtime)) {}

  // A request that passed what needs no server.
  struct Checked {
    int64_t bytes = 0;  // of the message, framing included
    RequestSizes sizes;
  };

  // What needs no server. `framing_bytes` stand around the request in the message.
  template <class Request>
  absl::StatusOr<Checked> CheckOwn(const Request& request, int64_t framing_bytes) const {
    if (absl::Status status = CheckTensors(request); !status.ok()) return status;
    const Checked checked{.bytes = Encode(request).byte_size() + framing_bytes, .sizes = SizesOf(request)};
    const absl::Status status = CheckOwnLimit(checked.bytes, checked.sizes, options_.max_message_bytes);
    if (!status.ok()) return status;
    return checked;
  }

  // Whether the server takes it, by the limits that are known. nullopt: it has to be asked, because none are, or
  // because they refuse it and are old.
  std::optional<absl::Status> CheckKnown(const Checked& checked) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (!known_) return std::nullopt;
    absl::Status status = CheckBy(checked, known_->limits);
    if (status.ok() || runtime_->Now() - known_->learned < absl::ToChronoNanoseconds(options_.trusted_for)) {
      return status;
    }
    return std::nullopt;
  }

  // By the answer of GetServerInfo, which is kept.
  absl::Status CheckBy(const Checked& checked, const absl::StatusOr<ServerInfo>& info) {
    const absl::StatusOr<Limits> limits = Learn(info);
    return limits.ok() ? CheckBy(checked, *limits) : limits.status();
  }

  // Asks the server if need be, and waits for it.
  absl::Status Check(const Checked& checked, const CallOptions& options) {
    const std::optional<absl::Status> known = CheckKnown(checked);
    return known ? *known : CheckBy(checked, server_->GetServerInfo(options));
  }

  // As Check, of nothing: so that limits are known.
  absl::Status Prepare(const CallOptions& options) { return Check({}, options); }

 private:
  // Limits, and when the server said so.
  struct Known {
    Limits limits;
    std::chrono::steady_clock::time_point learned;
  };

  absl::Status CheckBy(const Checked& checked, const Limits& limits) const {
    return CheckServerLimits(checked.sizes, checked.bytes, limits, options_.target);
  }

  absl::StatusOr<Limits> Learn(const absl::StatusOr<ServerInfo>& info) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!info.ok() && !absl::IsUnimplemented(info.status())) return info.status();
    const Known known{.limits = info.ok() ? info->limits : Limits(), .learned = runtime_->Now()};
    absl::MutexLock lock(&mu_);
    known_ = known;
    return known.limits;
  }

  const std::shared_ptr<Connection> server_;
  const LimitOptions options_;
  const std::shared_ptr<Runtime> runtime_;

  mutable absl::Mutex mu_;
  std::optional<Known> known_ ABSL_GUARDED_BY(mu_);  // set once the server has said
};

template <class Stream>
class LimitCheckingStream final : public Stream {
 public:
  LimitCheckingStream(std::unique_ptr<Stream> next, std::shared_ptr<RequestChecker> checker, CallOptions asking)
      : next_(std::move(next)), checker_(std::move(checker)), asking_(std::move(asking)) {}

  absl::Status Send(uint64_t request_id, const typename Stream::Request& request, const ItemOptions& options) override {
    const auto checked = checker_->CheckOwn(request, kStreamItemBytes);
    if (!checked.ok()) return checked.status();
    if (absl::Status status = checker_->Check(*checked, asking_); !status.ok()) return status;
    return next_->Send(request_id, request, options);
  }
  absl::Status Cancel(uint64_t request_id) override { return next_->Cancel(request_id); }
  absl::Status HalfClose() override { return next_->HalfClose(); }
  std::optional<typename Stream::Answer> Next() override { return next_->Next(); }
  absl::Status Finish() override { return next_->Finish(); }

 private:
  const std::unique_ptr<Stream> next_;
  const std::shared_ptr<RequestChecker> checker_;
  const CallOptions asking_;  // of a question about limits
};

// A call of Connection, by its pointer to member.
template <class Request, class Response>
using BlockingCall = absl::StatusOr<Response> (Connection::*)(const Request&, const CallOptions&);
template <class Response>
using Callback = std::function<void(absl::StatusOr<Response>)>;
template <class Request, class Response>
using CallbackCall = void (Connection::*)(const Request&, const CallOptions&, Callback<Response>);
template <class Stream>
using Opening = absl::StatusOr<std::unique_ptr<Stream>> (Connection::*)(const StreamOptions&);

class LimitCheckingConnection final : public Connection {
 public:
  LimitCheckingConnection(std::shared_ptr<Connection> next, const LimitOptions& options,
                          std::shared_ptr<Runtime> runtime)
      : next_(std::move(next)),
        runtime_(std::move(runtime)),
        checker_(std::make_shared<RequestChecker>(next_, options, runtime_)) {}

  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    return Call(&Connection::Attend, request, options);
  }
  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    CallAsync(&Connection::AttendAsync, request, options, std::move(done));
  }
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    return Open(&Connection::OpenAttendStream, options);
  }

  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options) override {
    return Call(&Connection::Forward, request, options);
  }
  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) override {
    CallAsync(&Connection::ForwardAsync, request, options, std::move(done));
  }
  absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions& options) override {
    return Open(&Connection::OpenForwardStream, options);
  }

  absl::StatusOr<std::vector<Layer>> ListLayers(const std::string& name, const CallOptions& options) override {
    return next_->ListLayers(name, options);
  }
  absl::StatusOr<Layer> GetLayer(const LayerName& layer, const CallOptions& options) override {
    return next_->GetLayer(layer, options);
  }
  absl::StatusOr<Layer> LoadLayer(const LayerName& layer, const CallOptions& options) override {
    return next_->LoadLayer(layer, options);
  }
  absl::Status UnloadLayer(const LayerName& layer, const CallOptions& options) override {
    return next_->UnloadLayer(layer, options);
  }

  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) override {
    return next_->GetServerInfo(options);
  }
  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    next_->GetServerInfoAsync(options, std::move(done));
  }
  absl::StatusOr<Health> CheckHealth(const std::string& service, const CallOptions& options) override {
    return next_->CheckHealth(service, options);
  }

 private:
  using Checked = RequestChecker::Checked;

  template <class Request, class Response>
  absl::StatusOr<Response> Call(BlockingCall<Request, Response> call, const Request& request,
                                const CallOptions& options) {
    const Deadline deadline(*runtime_, options.timeout);
    const absl::StatusOr<Checked> checked = checker_->CheckOwn(request, kNoFraming);
    if (!checked.ok()) return checked.status();
    if (absl::Status status = checker_->Check(*checked, options); !status.ok()) return status;
    return (next_.get()->*call)(request, {.timeout = deadline.Remaining(*runtime_), .cancel = options.cancel});
  }

  template <class Request, class Response>
  void CallAsync(CallbackCall<Request, Response> call, const Request& request, const CallOptions& options,
                 Callback<Response> done) {
    const absl::StatusOr<Checked> checked = checker_->CheckOwn(request, kNoFraming);
    const std::optional<absl::Status> known = checked.ok() ? checker_->CheckKnown(*checked) : checked.status();
    if (known && !known->ok()) {
      return runtime_->RunAfter(absl::ZeroDuration(), {}, [status = *known, done = std::move(done)] { done(status); });
    }
    if (known) return (next_.get()->*call)(request, options, std::move(done));
    // The answer about limits comes first; then what is left of the deadline is the call's.
    next_->GetServerInfoAsync(
        options, [call, next = next_, runtime = runtime_, checker = checker_, request, checked = *checked,
                  cancel = options.cancel, deadline = Deadline(*runtime_, options.timeout),
                  done = std::move(done)](absl::StatusOr<ServerInfo> info) {
          if (absl::Status refused = checker->CheckBy(checked, info); !refused.ok()) return done(refused);
          (next.get()->*call)(request, {.timeout = deadline.Remaining(*runtime), .cancel = cancel}, done);
        });
  }

  template <class Stream>
  absl::StatusOr<std::unique_ptr<Stream>> Open(Opening<Stream> open, const StreamOptions& options) {
    const CallOptions asking{.timeout = std::min(options.timeout, kDefaultTimeout), .cancel = options.cancel};
    if (absl::Status status = checker_->Prepare(asking); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Stream>> stream = (next_.get()->*open)(options);
    if (!stream.ok()) return stream.status();
    return std::make_unique<LimitCheckingStream<Stream>>(*std::move(stream), checker_, asking);
  }

  const std::shared_ptr<Connection> next_;
  const std::shared_ptr<Runtime> runtime_;
  const std::shared_ptr<RequestChecker> checker_;
};

}  // namespace

std::shared_ptr<Connection> MakeLimitCheckingConnection(std::shared_ptr<Connection> next, const LimitOptions& options,
                                                        std::shared_ptr<Runtime> runtime) {
  return std::make_shared<LimitCheckingConnection>(std::move(next), options, std::move(runtime));
}

}  // namespace triad::client
