// Unary calls: how each is answered and counted, and those that become a task.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "server/job.h"
#include "server/peer_name.h"
#include "server/serving_context.h"

namespace google::protobuf {
class Message;
}

namespace triad {

// What gRPC hands over with a call and keeps until the call is done; or the messages that the call made of its bytes.
struct UnaryExchange {
  grpc::CallbackServerContext& rpc;
  const google::protobuf::Message& request;
  google::protobuf::Message& response;
  Method method;
};

// Lifetime. gRPC calls OnDone, which deletes the call, once, last, and only after three things: the handler has
// returned this call, Finish was called, and OnCancel, where it was called, has returned. Answer is the only caller of
// Finish and runs once. So a call outlives its handler, Answer and OnCancel, whatever their order, and nothing touches
// it after Finish but OnCancel and OnDone.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(const UnaryExchange& exchange, ServingContext& context);

  // Once, from any thread: sends the response, or why there is none, and counts it.
  void Answer(absl::Status status);

 protected:
  ~UnaryCall() override = default;
  void OnDone() override;
  // Its reactions are as quick as gRPC's own: they need no thread of their own to run on, which costs more than they
  // do.
  bool InternalInlineable() final { return true; }

  const UnaryExchange& exchange() const { return exchange_; }
  Time received() const { return received_; }
  Time deadline() const { return deadline_; }
  // Of the whole message.
  virtual int64_t request_bytes() const;
  // Makes a response that is complete what gRPC sends.
  virtual absl::Status SerializeResponse() { return absl::OkStatus(); }
  // When a caller who is answered with RESOURCE_EXHAUSTED should come back.
  virtual Duration retry_after() const { return context_.scheduler.retry_after(); }

  ServingContext& context_;
  InFlightLedger::Hold hold_;  // until the reply is handed over

 private:
  const UnaryExchange exchange_;
  const Time received_;
  const Time deadline_;
  Time answered_;  // written before Finish, read in OnDone
};

// Answers a call right here: `answer` fills the response. For what takes microseconds. Unknown fields are refused
// before.
grpc::ServerUnaryReactor* AnswerAtOnce(const UnaryExchange& exchange, ServingContext& context,
                                       absl::FunctionRef<absl::Status()> answer);

// A call whose answer is computed by the task that `make` makes of it.
template <class Request, class Response>
class TaskCall : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

  // Once CheckOpen has let it in. `pieces` is what the message has not (Job).
  void Begin(MakeTask<Request, Response> make, std::unique_ptr<KeyValuePieces> pieces = nullptr) {
    absl::Status status = Submit({.request = static_cast<const Request&>(exchange().request),
                                  .response = static_cast<Response&>(exchange().response),
                                  .pieces = std::move(pieces),
                                  .received = received(),
                                  .deadline = deadline(),
                                  .done =
                                      [this](absl::Status end, const ComputedRequest& effort) {
                                        if (end.ok()) context_.metrics.OnComputed(effort);
                                        Answer(std::move(end));
                                      }},
                                 make);
    if (!status.ok()) Answer(std::move(status));
  }

  // Not called before the handler has returned, so task_id_ is set.
  void OnCancel() final { context_.scheduler.Cancel(task_id_); }

 private:
  // OK: the task's done will answer, or has already.
  absl::Status Submit(Job<Request, Response> job, MakeTask<Request, Response> make) {
    absl::StatusOr<std::unique_ptr<Task>> task = make(std::move(job), context_);
    if (!task.ok()) return task.status();
    absl::StatusOr<TaskId> id = AdmitTask(*std::move(task), PeerName(exchange().rpc.peer()), context_, hold_);
    if (!id.ok()) return id.status();
    task_id_ = *id;
    return absl::OkStatus();
  }

  TaskId task_id_ = 0;  // written before the handler returns
};

// Answers one call of the messages that `make` takes: validates, submits, returns; small work is computed before it
// returns where no compute thread would take it at once (RunsHere). The result belongs to gRPC and deletes itself.
template <class Request, class Response>
grpc::ServerUnaryReactor* StartTaskCall(const UnaryExchange& exchange, MakeTask<Request, Response> make,
                                        ServingContext& context) {
  auto* const call = std::make_unique<TaskCall<Request, Response>>(exchange, context).release();
  if (absl::Status status = CheckOpen(context); status.ok()) {
    call->Begin(make);
  } else {
    call->Answer(std::move(status));
  }
  return call;
}

}  // namespace triad
