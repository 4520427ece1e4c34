#include "client/src/retrying_connection.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/src/retry_policy.h"

namespace triad::client {
namespace {

absl::Status CancelledInPause(const absl::Status& last) {
  return absl::CancelledError(absl::StrCat("cancelled while waiting to retry after: ", last.message()));
}

// gRPC rounds deadlines up to milliseconds: a call that has no time left may still reach the server.
absl::Status NoTimeLeft() { return absl::DeadlineExceededError("the deadline had passed before the call was made"); }

// Whether a call leaves the server as it was.
enum Effect { kRead, kChange };

const absl::Status& StatusOf(const absl::Status& result) { return result; }
template <class Reply>
const absl::Status& StatusOf(const absl::StatusOr<Reply>& result) {
  return result.status();
}

// One call without a waiting thread, which leaves the server as it was: its attempts one after another. Owned by
// whichever callback comes next.
template <class Reply>
class AsyncRetry : public std::enable_shared_from_this<AsyncRetry<Reply>> {
 public:
  using Callback = std::function<void(absl::StatusOr<Reply>)>;
  using Attempt = std::function<void(const CallOptions&, Callback)>;

  AsyncRetry(std::shared_ptr<Runtime> runtime, const RetryOptions& retry, const CallOptions& options)
      : runtime_(std::move(runtime)), retry_(retry), cancel_(options.cancel), deadline_(*runtime_, options.timeout) {}

  // `attempt` makes one attempt; `done` gets the last one's result.
  void Start(Attempt attempt, Callback done) {
    attempt_ = std::move(attempt);
    done_ = std::move(done);
    Try();
  }

 private:
  void Try() {
    const absl::Duration remaining = deadline_.Remaining(*runtime_);
    if (remaining <= absl::ZeroDuration()) {
      return runtime_->RunAfter(absl::ZeroDuration(), {},
                                [self = this->shared_from_this()] { self->done_(NoTimeLeft()); });
    }
    ++attempts_;
    attempt_({.timeout = remaining, .cancel = cancel_},
             [self = this->shared_from_this()](absl::StatusOr<Reply> result) { self->OnResult(std::move(result)); });
  }

  void OnResult(absl::StatusOr<Reply> result) {
    if (result.ok()) return done_(std::move(result));
    const auto delay = DecideRetry({.status = result.status(),
                                    .attempts = attempts_,
                                    .remaining = deadline_.Remaining(*runtime_),
                                    .random = runtime_->Random()},
                                   retry_);
    if (!delay) return done_(std::move(result));
    runtime_->RunAfter(*delay, cancel_, [self = this->shared_from_this(), last = result.status()] {
      if (self->cancel_.stop_requested()) return self->done_(CancelledInPause(last));
      self->Try();
    });
  }

  const std::shared_ptr<Runtime> runtime_;
  const RetryOptions retry_;
  const std::stop_token cancel_;
  const Deadline deadline_;
  Attempt attempt_;
  Callback done_;
  int attempts_ = 0;
};

class RetryingConnection final : public Connection {
 public:
  RetryingConnection(std::shared_ptr<Connection> next, const RetryOptions& options, std::shared_ptr<Runtime> runtime)
      : next_(std::move(next)), options_(options), runtime_(std::move(runtime)) {}

  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    return Retry<absl::StatusOr<AttendResponse>>(kRead, options,
                                                 [&](const CallOptions& once) { return next_->Attend(request, once); });
  }

  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    std::make_shared<AsyncRetry<AttendResponse>>(runtime_, options_, options)
        ->Start([next = next_, request](const CallOptions& once,
                                        AttendCallback ended) { next->AttendAsync(request, once, std::move(ended)); },
                std::move(done));
  }

  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    return next_->OpenAttendStream(options);
  }

  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options) override {
    return Retry<absl::StatusOr<ForwardResponse>>(
        kRead, options, [&](const CallOptions& once) { return next_->Forward(request, once); });
  }

  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) override {
    std::make_shared<AsyncRetry<ForwardResponse>>(runtime_, options_, options)
        ->Start([next = next_, request](const CallOptions& once,
                                        ForwardCallback ended) { next->ForwardAsync(request, once, std::move(ended)); },
                std::move(done));
  }

  absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions& options) override {
    return next_->OpenForwardStream(options);
  }

  absl::StatusOr<std::vector<Layer>> ListLayers(const std::string& name, const CallOptions& options) override {
    return Retry<absl::StatusOr<std::vector<Layer>>>(
        kRead, options, [&](const CallOptions& once) { return next_->ListLayers(name, once); });
  }

  absl::StatusOr<Layer> GetLayer(const LayerName& layer, const CallOptions& options) override {
    return Retry<absl::StatusOr<Layer>>(kRead, options,
                                        [&](const CallOptions& once) { return next_->GetLayer(layer, once); });
  }

  absl::StatusOr<Layer> LoadLayer(const LayerName& layer, const CallOptions& options) override {
    return Retry<absl::StatusOr<Layer>>(kChange, options,
                                        [&](const CallOptions& once) { return next_->LoadLayer(layer, once); });
  }

  absl::Status UnloadLayer(const LayerName& layer, const CallOptions& options) override {
    return Retry<absl::Status>(kChange, options,
                               [&](const CallOptions& once) { return next_->UnloadLayer(layer, once); });
  }

  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) override {
    return Retry<absl::StatusOr<ServerInfo>>(kRead, options,
                                             [&](const CallOptions& once) { return next_->GetServerInfo(once); });
  }

  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    std::make_shared<AsyncRetry<ServerInfo>>(runtime_, options_, options)
        ->Start([next = next_](const CallOptions& once,
                               ServerInfoCallback ended) { next->GetServerInfoAsync(once, std::move(ended)); },
                std::move(done));
  }

  absl::StatusOr<Health> CheckHealth(const std::string& service, const CallOptions& options) override {
    if (options.timeout <= absl::ZeroDuration()) return NoTimeLeft();
    return next_->CheckHealth(service, options);
  }

 private:
  // `Result` is a Status or a StatusOr.
  template <class Result>
  Result Retry(Effect effect, const CallOptions& options, absl::FunctionRef<Result(const CallOptions&)> attempt) {
    const Deadline deadline(*runtime_, options.timeout);
    for (int attempts = 1;; ++attempts) {
      const absl::Duration remaining = deadline.Remaining(*runtime_);
      if (remaining <= absl::ZeroDuration()) return NoTimeLeft();
      Result result = attempt({.timeout = remaining, .cancel = options.cancel});
      if (result.ok()) return result;
      const absl::Status status = StatusOf(result);
      const auto delay = DecideRetry({.status = status,
                                      .attempts = attempts,
                                      .remaining = deadline.Remaining(*runtime_),
                                      .random = runtime_->Random(),
                                      .changes_server = effect == kChange},
                                     options_);
      if (!delay) return result;
      runtime_->Sleep(*delay, options.cancel);
      if (options.cancel.stop_requested()) return CancelledInPause(status);
    }
  }

  const std::shared_ptr<Connection> next_;
  const RetryOptions options_;
  const std::shared_ptr<Runtime> runtime_;
};

}  // namespace

std::shared_ptr<Connection> MakeRetryingConnection(std::shared_ptr<Connection> next, const RetryOptions& options,
                                                   std::shared_ptr<Runtime> runtime) {
  return std::make_shared<RetryingConnection>(std::move(next), options, std::move(runtime));
}

}  // namespace triad::client
