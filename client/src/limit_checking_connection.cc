#include "client/src/limit_checking_connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/src/attend_messages.h"
#include "client/src/check_request.h"

namespace triad::client {
namespace {

// Bytes that a stream's item has around its request at most: id (11), field and length of the request (11), timeout (2
// + 18).
constexpr int64_t kStreamItemBytes = 42;
constexpr int64_t kNoFraming = 0;

// The rules, and the server's limits once they are known. Shared with calls and streams that outlive the connection.
class RequestChecker {
 public:
  explicit RequestChecker(const LimitOptions& options) : options_(options) {}

  // What needs no server. Returns the bytes of the message: those of the request and `framing_bytes` around it.
  absl::StatusOr<int64_t> CheckOwn(const AttendRequest& request, int64_t framing_bytes) const {
    if (absl::Status status = CheckTensors(request); !status.ok()) return status;
    const int64_t bytes = EncodedBytes(request) + framing_bytes;
    if (absl::Status status = CheckOwnLimit(bytes, options_.max_message_bytes); !status.ok()) return status;
    return bytes;
  }

  absl::Status CheckServers(const AttendRequest& request, int64_t bytes, const Limits& limits) const {
    return CheckServerLimits(request, bytes, limits, options_.target);
  }

  std::optional<Limits> KnownLimits() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return limits_;
  }

  // Takes the answer of GetServerInfo.
  absl::StatusOr<Limits> Learn(const absl::StatusOr<ServerInfo>& info) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!info.ok() && !absl::IsUnimplemented(info.status())) return info.status();
    const Limits limits = info.ok() ? info->limits : Limits();
    absl::MutexLock lock(&mu_);
    limits_ = limits;
    return limits;
  }

 private:
  const LimitOptions options_;

  mutable absl::Mutex mu_;
  std::optional<Limits> limits_ ABSL_GUARDED_BY(mu_);  // set once the server has said
};

class LimitCheckingStream final : public AttendStream {
 public:
  LimitCheckingStream(std::unique_ptr<AttendStream> next, std::shared_ptr<const RequestChecker> checker,
                      const Limits& limits)
      : next_(std::move(next)), checker_(std::move(checker)), limits_(limits) {}

  absl::Status Send(uint64_t request_id, const AttendRequest& request, const ItemOptions& options) override {
    const absl::StatusOr<int64_t> bytes = checker_->CheckOwn(request, kStreamItemBytes);
    if (!bytes.ok()) return bytes.status();
    if (absl::Status status = checker_->CheckServers(request, *bytes, limits_); !status.ok()) return status;
    return next_->Send(request_id, request, options);
  }
  absl::Status Cancel(uint64_t request_id) override { return next_->Cancel(request_id); }
  absl::Status HalfClose() override { return next_->HalfClose(); }
  std::optional<AttendAnswer> Next() override { return next_->Next(); }
  absl::Status Finish() override { return next_->Finish(); }

 private:
  const std::unique_ptr<AttendStream> next_;
  const std::shared_ptr<const RequestChecker> checker_;
  const Limits limits_;
};

class LimitCheckingConnection final : public Connection {
 public:
  LimitCheckingConnection(std::shared_ptr<Connection> next, const LimitOptions& options,
                          std::shared_ptr<Runtime> runtime)
      : next_(std::move(next)), runtime_(std::move(runtime)), checker_(std::make_shared<RequestChecker>(options)) {}

  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    const Deadline deadline(*runtime_, options.timeout);
    const absl::StatusOr<int64_t> bytes = checker_->CheckOwn(request, kNoFraming);
    if (!bytes.ok()) return bytes.status();
    const absl::StatusOr<Limits> limits = GetLimits(options);
    if (!limits.ok()) return limits.status();
    if (absl::Status status = checker_->CheckServers(request, *bytes, *limits); !status.ok()) return status;
    return next_->Attend(request, {.timeout = deadline.Remaining(*runtime_), .cancel = options.cancel});
  }

  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    const absl::StatusOr<int64_t> bytes = checker_->CheckOwn(request, kNoFraming);
    const std::optional<Limits> known = checker_->KnownLimits();
    absl::Status status = bytes.status();
    if (status.ok() && known) status = checker_->CheckServers(request, *bytes, *known);
    if (!status.ok()) {
      return runtime_->RunAfter(absl::ZeroDuration(), {}, [status, done = std::move(done)] { done(status); });
    }
    if (known) return next_->AttendAsync(request, options, std::move(done));
    AskThenAttend(request, *bytes, options, std::move(done));
  }

  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    const absl::StatusOr<Limits> limits =
        GetLimits({.timeout = std::min(options.timeout, kDefaultTimeout), .cancel = options.cancel});
    if (!limits.ok()) return limits.status();
    absl::StatusOr<std::unique_ptr<AttendStream>> stream = next_->OpenAttendStream(options);
    if (!stream.ok()) return stream.status();
    return std::make_unique<LimitCheckingStream>(*std::move(stream), checker_, *limits);
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
  absl::StatusOr<Limits> GetLimits(const CallOptions& options) {
    if (const std::optional<Limits> known = checker_->KnownLimits()) return *known;
    return checker_->Learn(next_->GetServerInfo(options));
  }

  void AskThenAttend(const AttendRequest& request, int64_t bytes, const CallOptions& options, AttendCallback done) {
    next_->GetServerInfoAsync(options, [next = next_, runtime = runtime_, checker = checker_, request, bytes,
                                        cancel = options.cancel, deadline = Deadline(*runtime_, options.timeout),
                                        done = std::move(done)](absl::StatusOr<ServerInfo> info) {
      const absl::StatusOr<Limits> limits = checker->Learn(info);
      if (!limits.ok()) return done(limits.status());
      if (absl::Status status = checker->CheckServers(request, bytes, *limits); !status.ok()) return done(status);
      next->AttendAsync(request, {.timeout = deadline.Remaining(*runtime), .cancel = cancel}, done);
    });
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
