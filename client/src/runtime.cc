#include "client/src/runtime.h"

#include <random>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/src/callback_scope.h"
#include "client/src/grpc_time.h"
#include "grpcpp/alarm.h"

namespace triad::client {
namespace {

// A timer that a stop request fires early. Shared by its starter and gRPC's timer, whichever ends last.
class Timer {
 public:
  explicit Timer(const std::stop_token& cancel) : on_stop_(cancel, [this] { FireEarly(); }) {}

  void Start(absl::Duration delay, std::function<void(bool)> done) {
    absl::MutexLock lock(&mu_);
    alarm_.Set(GrpcDeadline(stopped_ ? absl::ZeroDuration() : delay), std::move(done));
  }

 private:
  void FireEarly() {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    alarm_.Cancel();
  }

  absl::Mutex mu_;  // a grpc::Alarm may not be set and cancelled at the same time
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mu_);
  std::stop_callback<std::function<void()>> on_stop_;  // last member: gone before what it touches
};

class GrpcRuntime final : public Runtime {
 public:
  std::chrono::steady_clock::time_point Now() override { return std::chrono::steady_clock::now(); }

  double Random() override {
    thread_local std::minstd_rand generator{std::random_device{}()};
    return std::uniform_real_distribution<double>(0, 1)(generator);
  }

  void Sleep(absl::Duration delay, const std::stop_token& cancel) override {
    absl::Notification stopped;
    std::stop_callback on_stop(cancel, [&stopped] { stopped.Notify(); });
    stopped.WaitForNotificationWithTimeout(delay);
  }

  void RunAfter(absl::Duration delay, const std::stop_token& cancel, std::function<void()> done) override {
    auto timer = std::make_shared<Timer>(cancel);
    timer->Start(delay, [timer, done = std::move(done)](bool) mutable {
      const CallbackScope scope;
      // The alarm's closure owns the timer that owns the alarm; letting go here breaks the circle.
      const std::shared_ptr<Timer> last_timer = std::move(timer);
      const std::function<void()> last_done = std::move(done);
      last_done();
    });
  }
};

}  // namespace

std::shared_ptr<Runtime> RealRuntime() { return std::make_shared<GrpcRuntime>(); }

}  // namespace triad::client
