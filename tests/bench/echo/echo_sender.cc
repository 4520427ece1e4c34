#include "tests/bench/echo/echo_sender.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "client/src/channel_pool.h"

namespace triad {
namespace {

class EchoSender final : public tools::RequestSender {
 public:
  EchoSender(std::shared_ptr<client::ChannelPool> pool, const std::string& request)
      : pool_(std::move(pool)), slice_(request), request_(&slice_, /*nslices=*/1) {}

  absl::Status Send(const tools::PlannedRequest&, tools::ReplyCallback done) override {
    auto call = std::make_shared<Call>(pool_);
    call->request = request_;  // counts references
    Call& started = *call;
    grpc::GenericStub(started.lease.channel())
        .UnaryCall(&started.context, "/triad.v1.AttentionService/Attend", {}, &started.request, &started.reply,
                   [call = std::move(call), done = std::move(done)](const grpc::Status& status) {
                     done({.status = status.ok() ? absl::OkStatus()
                                                 : absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                                                                status.error_message())});
                   });
    return absl::OkStatus();
  }

 private:
  struct Call {
    explicit Call(const std::shared_ptr<client::ChannelPool>& pool) : lease(pool->Pick()) {}
    const client::ChannelPool::Lease lease;
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };

  const std::shared_ptr<client::ChannelPool> pool_;
  const grpc::Slice slice_;
  const grpc::ByteBuffer request_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<tools::RequestSender>> MakeEchoSender(const std::string& target, int connections,
                                                                     const std::string& request) {
  client::ClientOptions options;
  options.target = target;
  options.channels = connections;
  auto pool = client::ChannelPool::Create(options);
  if (!pool.ok()) return pool.status();
  return std::make_unique<EchoSender>(*std::move(pool), request);
}

}  // namespace triad
