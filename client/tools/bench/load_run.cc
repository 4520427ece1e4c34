#include "client/tools/bench/load_run.h"

#include <sys/prctl.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace triad::tools {
namespace {

class LoadRun {
 public:
  LoadRun(LoadPlan plan, const LoadTools& tools)
      : tools_(tools),
        concurrency_(plan.concurrency),
        max_requests_(plan.max_requests),
        max_in_flight_(plan.max_in_flight),
        duration_(plan.duration),
        stop_(std::move(plan.stop)),
        due_times_(std::move(plan.due_times)),
        requests_(std::move(plan.requests)) {}

  RunEnd Run() {
    if (concurrency_ > 0) {
      RunClosed();
    } else {
      RunOpen();
    }
    MutexLock lock(mu_);
    while (in_flight_ > 0) idle_.Wait(mu_);
    if (stop_.stop_requested()) return RunEnd::kInterrupted;
    return is_refused_ ? RunEnd::kRefused : RunEnd::kComplete;
  }

 private:
  void RunClosed() {
    {
      MutexLock lock(mu_);
      in_flight_ = concurrency_;
    }
    for (int64_t lane = 0; lane < concurrency_; ++lane) SendNext(lane, tools_.clock.Now());
  }

  void RunOpen() {
    prctl(PR_SET_TIMERSLACK, 1);  // ns; by default the kernel wakes this thread up to 50 us late
    const std::stop_callback on_stop(stop_, [this] {
      MutexLock lock(mu_);
      due_.SignalAll();
    });
    const Time start = tools_.recorder.start();
    for (int64_t sent = 0; sent < max_requests_; ++sent) {
      const std::optional<Duration> due = due_times_();
      if (!due) {
        if (duration_) tools_.recorder.OnSendingEnded(start + *duration_);
        break;
      }
      if (!AwaitTime(start + *due)) break;
      SendDue(/*turn=*/sent, start + *due);
    }
    tools_.recorder.OnSendingEnded(tools_.clock.Now());
  }

  // A request of the plan that is about to go out.
  struct Outgoing {
    PlannedRequest request;
    Route route;
    int64_t lane = 0;  // closed loop
    Time due;
    Time sent;
  };

  const Route& RouteOf(int64_t turn) const { return tools_.routes[static_cast<size_t>(turn) % tools_.routes.size()]; }

  // Open loop: sends the request that is due, or drops it.
  void SendDue(int64_t turn, Time due) ABSL_LOCKS_EXCLUDED(mu_) {
    Outgoing out{.request = {}, .route = RouteOf(turn), .lane = 0, .due = due, .sent = {}};
    bool fits = false;
    {
      MutexLock lock(mu_);
      out.request = requests_();
      fits = in_flight_ < max_in_flight_;
      if (fits) ++in_flight_;
    }
    Trace(out.request, due);
    if (!fits) return tools_.recorder.OnDropped(due);
    out.sent = tools_.clock.Now();
    if (!Send(out)) Leave();
  }

  // Closed loop: the lane's next request, or the lane's end.
  void SendNext(int64_t lane, Time due) ABSL_LOCKS_EXCLUDED(mu_) {
    Outgoing out{.request = {}, .route = RouteOf(lane), .lane = lane, .due = due, .sent = tools_.clock.Now()};
    if (!TakeNext(out.sent, out.request)) return Leave();
    Trace(out.request, out.sent);
    if (!Send(out)) Leave();
  }

  bool TakeNext(Time now, PlannedRequest& request) ABSL_LOCKS_EXCLUDED(mu_) {
    const Time end = duration_ ? tools_.recorder.start() + *duration_ : kNever;
    {
      MutexLock lock(mu_);
      if (taken_ < max_requests_ && now < end && !MustStop()) {
        ++taken_;
        request = requests_();
        return true;
      }
    }
    tools_.recorder.OnSendingEnded(std::min(now, end));
    return false;
  }

  void Trace(const PlannedRequest& request, Time due) {
    if (tools_.trace != nullptr) tools_.trace->Add({.due = due - tools_.recorder.start(), .request = request});
  }

  // False: it could not be sent, and nobody will answer.
  bool Send(const Outgoing& out) {
    tools_.recorder.OnSent(out.due, out.sent);
    const absl::Status status =
        out.route.sender->Send(out.request, [this, out](Reply reply) { OnReply(out, std::move(reply)); });
    if (!status.ok()) RecordError(TimesOf(out), status);
    return status.ok();
  }

  void RecordError(const RequestTimes& times, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!tools_.recorder.OnError(times, status)) return;
    MutexLock lock(mu_);
    is_refused_ = true;
    due_.SignalAll();
  }

  RequestTimes TimesOf(const Outgoing& out) const {
    return {.due = out.due, .sent = out.sent, .answered = tools_.clock.Now()};
  }

  void OnReply(const Outgoing& out, Reply reply) {
    const RequestTimes times = TimesOf(out);
    if (reply.status.ok()) {
      tools_.recorder.OnResult(times, reply.timings);
      tools_.sample.Offer({.request = out.request,
                           .target = out.route.target,
                           .output = std::move(reply.output),
                           .layer_version = reply.layer_version});
    } else {
      RecordError(times, reply.status);
    }
    if (concurrency_ > 0) {
      SendNext(out.lane, times.answered);
    } else {
      Leave();
    }
  }

  // The last one to leave may find this gone once it has released the mutex.
  void Leave() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (--in_flight_ == 0) idle_.SignalAll();
  }

  // False: the sending must stop first.
  bool AwaitTime(Time due) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (!MustStop() && tools_.clock.Now() < due) tools_.clock.WaitUntil(due_, mu_, due);
    return !MustStop();
  }

  bool MustStop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return is_refused_ || stop_.stop_requested(); }

  const LoadTools& tools_;
  const int64_t concurrency_;
  const int64_t max_requests_;
  const int64_t max_in_flight_;
  const std::optional<Duration> duration_;
  const std::stop_token stop_;
  const DueTimes due_times_;  // the calling thread's

  Mutex mu_;  // guards what follows
  CondVar idle_;
  CondVar due_;  // signalled when the sending must stop; else the clock ends the wait
  RequestStream requests_ ABSL_GUARDED_BY(mu_);
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;        // closed loop: requests so far
  int64_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;    // closed loop: lanes that have not ended
  bool is_refused_ ABSL_GUARDED_BY(mu_) = false;  // for good
};

}  // namespace

RunEnd RunLoad(LoadPlan plan, const LoadTools& tools) { return LoadRun(std::move(plan), tools).Run(); }

}  // namespace triad::tools
