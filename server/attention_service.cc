#include "server/attention_service.h"

#include <utility>

#include "server/attend_call.h"
#include "server/attend_stream.h"
#include "server/rpc_status.h"
#include "server/unknown_fields.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad {
namespace {

class AttentionService final : public v1::AttentionService::CallbackService {
 public:
  AttentionService(ServingContext& context, v1::ServerInfo info) : context_(context), info_(std::move(info)) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* rpc, const v1::AttendRequest* request,
                                   v1::AttendResponse* response) override {
    return StartAttend(*rpc, *request, *response, context_);
  }

  grpc::ServerBidiReactor<v1::AttendStreamRequest, v1::AttendStreamResponse>* AttendStream(
      grpc::CallbackServerContext* rpc) override {
    return StartAttendStream(*rpc, context_);
  }

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* rpc, const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override {
    const Time received = context_.clock.Now();
    const absl::Status status = CheckNothingUnknown(*request);
    if (status.ok()) *response = info_;
    context_.metrics.OnAnswered({.method = Method::kGetServerInfo,
                                 .code = status.code(),
                                 .total = context_.clock.Now() - received,
                                 .request_bytes = static_cast<int64_t>(request->ByteSizeLong()),
                                 .reply_bytes = static_cast<int64_t>(response->ByteSizeLong())});
    grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
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
