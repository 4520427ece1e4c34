#include "server/attend_call.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "server/rpc_status.h"

namespace triad {
namespace {

// Lifetime. gRPC calls OnDone once, last, and only after three things: StartAttend has returned, Finish was called, and
// OnCancel, where it was called, has returned. Answer, the only caller of Finish, runs once: either Begin calls it
// because no task was accepted, or the task's done does, which the scheduler promises exactly one of. So this object
// outlives Begin, Answer and OnCancel, whatever their order, and nothing touches it after Finish but OnCancel and
// OnDone.
class AttendCall final : public grpc::ServerUnaryReactor {
 public:
  AttendCall(grpc::CallbackServerContext& rpc, const v1::AttendRequest& request, v1::AttendResponse& response,
             ServingContext& context)
      : rpc_(rpc),
        request_(request),
        response_(response),
        context_(context),
        received_(context.clock.Now()),
        deadline_(DeadlineOf(rpc, received_)) {}

  void Begin() {
    absl::Status status = Submit();
    if (!status.ok()) Answer(std::move(status));
  }

  // Not called before StartAttend has returned, so task_id_ is set.
  void OnCancel() override { context_.scheduler.Cancel(task_id_); }

  void OnDone() override {
    if (is_computed_) context_.metrics.OnReplied(context_.clock.Now() - answered_);
    delete this;
  }

 private:
  // OK: the task's done will answer, or has already.
  absl::Status Submit() {
    if (absl::Status status = context_.ledger.CheckOpen(); !status.ok()) {
      return CountRefusal(std::move(status), context_.metrics);
    }
    AttendJob job{.request = request_,
                  .response = response_,
                  .received = received_,
                  .deadline = deadline_,
                  .done = [this](absl::Status status, const ComputedRequest& effort) {
                    is_computed_ = status.ok();
                    if (is_computed_) context_.metrics.OnComputed(effort);
                    Answer(std::move(status));
                  }};
    absl::StatusOr<std::unique_ptr<AttendTask>> task =
        AttendTask::Create(std::move(job), context_.kernels, context_.clock);
    if (!task.ok()) return task.status();
    absl::StatusOr<TaskId> id = AdmitTask(*std::move(task), context_, hold_);
    if (!id.ok()) return id.status();
    task_id_ = *id;
    return absl::OkStatus();
  }

  void Answer(absl::Status status) {
    answered_ = context_.clock.Now();
    status = WithDeadline(std::move(status), deadline_, answered_);
    if (absl::IsResourceExhausted(status)) {
      rpc_.AddTrailingMetadata(kRetryPushbackKey, std::to_string(PushbackMs(context_.scheduler.retry_after())));
    }
    context_.metrics.OnAnswered({.method = Method::kAttend,
                                 .code = status.code(),
                                 .total = answered_ - received_,
                                 .request_bytes = static_cast<int64_t>(request_.ByteSizeLong()),
                                 .reply_bytes = status.ok() ? static_cast<int64_t>(response_.ByteSizeLong()) : 0});
    Finish(ToGrpc(status));
  }

  grpc::CallbackServerContext& rpc_;
  const v1::AttendRequest& request_;
  v1::AttendResponse& response_;
  ServingContext& context_;
  const Time received_;
  const Time deadline_;

  InFlightLedger::Hold hold_;  // until the reply is handed over
  TaskId task_id_ = 0;         // written before StartAttend returns
  bool is_computed_ = false;   // written before Finish, read in OnDone
  Time answered_;              // likewise
};

}  // namespace

grpc::ServerUnaryReactor* StartAttend(grpc::CallbackServerContext& rpc, const v1::AttendRequest& request,
                                      v1::AttendResponse& response, ServingContext& context) {
  auto call = std::make_unique<AttendCall>(rpc, request, response, context);
  call->Begin();
  return call.release();  // gRPC's now; OnDone deletes it
}

}  // namespace triad
