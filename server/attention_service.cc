#include "server/attention_service.h"

#include <utility>

#include "server/attend_call.h"
#include "server/item_stream.h"
#include "server/unary_call.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad {
namespace {

absl::StatusOr<std::unique_ptr<Task>> MakeAttendTask(AttendJob job, ServingContext& context) {
  return AttendTask::Create(std::move(job), context.kernels, context.clock);
}

absl::StatusOr<std::unique_ptr<Task>> MakeForwardTask(ForwardJob job, ServingContext& context) {
  const ForwardHost host{.limits = context.kernels.limits,
                         .max_head_sequences = context.kernels.max_head_sequences,
                         .kernel = context.kernels.fast,
                         .layers = context.layers};
  return ForwardTask::Create(std::move(job), host, context.clock);
}

// Attend comes as bytes, all else as messages.
using Rpcs = v1::AttentionService::WithRawCallbackMethod_Attend<v1::AttentionService::WithCallbackMethod_AttendStream<
    v1::AttentionService::WithCallbackMethod_Forward<v1::AttentionService::WithCallbackMethod_ForwardStream<
        v1::AttentionService::WithCallbackMethod_GetServerInfo<v1::AttentionService::Service>>>>>;

class AttentionService final : public Rpcs {
 public:
  AttentionService(ServingContext& context, v1::ServerInfo info) : context_(context), info_(std::move(info)) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* rpc, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    // gRPC hands out its request as constant, and looks at it no more: this one may be emptied.
    return StartAttendCall({*rpc, const_cast<grpc::ByteBuffer&>(*request), *response}, MakeAttendTask, context_);
  }

  grpc::ServerBidiReactor<v1::AttendStreamRequest, v1::AttendStreamResponse>* AttendStream(
      grpc::CallbackServerContext* rpc) override {
    return StartItemStream<v1::AttendStreamRequest, v1::AttendStreamResponse>(*rpc, Method::kAttendStream,
                                                                              MakeAttendTask, context_);
  }

  grpc::ServerUnaryReactor* Forward(grpc::CallbackServerContext* rpc, const v1::ForwardRequest* request,
                                    v1::ForwardResponse* response) override {
    return StartTaskCall({*rpc, *request, *response, Method::kForward}, MakeForwardTask, context_);
  }

  grpc::ServerBidiReactor<v1::ForwardStreamRequest, v1::ForwardStreamResponse>* ForwardStream(
      grpc::CallbackServerContext* rpc) override {
    return StartItemStream<v1::ForwardStreamRequest, v1::ForwardStreamResponse>(*rpc, Method::kForwardStream,
                                                                                MakeForwardTask, context_);
  }

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* rpc, const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override {
    return AnswerAtOnce({*rpc, *request, *response, Method::kGetServerInfo}, context_, [&] {
      *response = info_;
      return absl::OkStatus();
    });
  }

 private:
  ServingContext& context_;
  const v1::ServerInfo info_;
};

}  // namespace

const char* const kAttentionServiceName = v1::AttentionService::service_full_name();

std::shared_ptr<grpc::Service> MakeAttentionService(ServingContext& context, v1::ServerInfo info) {
  return std::make_shared<AttentionService>(context, std::move(info));
}

}  // namespace triad
