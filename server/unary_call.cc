#include "server/unary_call.h"

#include <google/protobuf/message.h>

#include "server/rpc_status.h"
#include "server/unknown_fields.h"

namespace triad {
namespace {

class QuickCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;
};

}  // namespace

UnaryCall::UnaryCall(const UnaryExchange& exchange, ServingContext& context)
    : context_(context),
      exchange_(exchange),
      received_(context.clock.Now()),
      deadline_(DeadlineOf(exchange.rpc, received_)) {}

int64_t UnaryCall::request_bytes() const { return static_cast<int64_t>(exchange_.request.ByteSizeLong()); }

void UnaryCall::Answer(absl::Status status) {
  if (status.ok()) status = SerializeResponse();
  answered_ = context_.clock.Now();
  status = WithDeadline(std::move(status), deadline_, answered_);
  AddRetryPushback(exchange_.rpc, status, [this] { return retry_after(); });
  context_.metrics.OnAnswered(
      {.method = exchange_.method,
       .code = status.code(),
       .total = answered_ - received_,
       .request_bytes = request_bytes(),
       .reply_bytes = status.ok() ? static_cast<int64_t>(exchange_.response.ByteSizeLong()) : 0});
  Finish(ToGrpc(status));
}

void UnaryCall::OnDone() {
  context_.metrics.OnReplied(context_.clock.Now() - answered_);
  delete this;
}

grpc::ServerUnaryReactor* AnswerAtOnce(const UnaryExchange& exchange, ServingContext& context,
                                       absl::FunctionRef<absl::Status()> answer) {
  auto* const call = std::make_unique<QuickCall>(exchange, context).release();
  absl::Status status = CheckNothingUnknown(exchange.request);
  if (status.ok()) status = answer();
  call->Answer(std::move(status));
  return call;
}

}  // namespace triad
