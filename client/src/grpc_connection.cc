#include "client/src/grpc_connection.h"

#include <functional>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "client/src/attend_messages.h"
#include "client/src/callback_scope.h"
#include "client/src/grpc_attend_stream.h"
#include "client/src/grpc_status.h"
#include "client/src/grpc_time.h"
#include "client/src/health_check.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace triad::client {
namespace {

using HealthStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

// A channel, a context and a way to stop, for the length of one call.
class OneCall {
 public:
  OneCall(ChannelPool& pool, const CallOptions& options)
      : lease_(pool.Pick()), on_stop_(options.cancel, [this] { context_.TryCancel(); }) {
    context_.set_deadline(GrpcDeadline(options.timeout));
  }

  grpc::ClientContext& context() { return context_; }
  const ChannelPool::Lease& lease() const { return lease_; }
  absl::Status Convert(const grpc::Status& status) const { return FromGrpc(status, context_); }

 private:
  const ChannelPool::Lease lease_;
  grpc::ClientContext context_;
  std::stop_callback<std::function<void()>> on_stop_;  // last member: gone before the context it cancels
};

// What a call without a waiting thread needs until its callback, which owns it.
template <class Request, class Reply, class Callback>
struct AsyncCall {
  AsyncCall(ChannelPool& pool, const CallOptions& options, Callback callback)
      : one(pool, options), done(std::move(callback)) {}

  OneCall one;
  Request request;
  Reply reply;
  const Callback done;
};
using AttendCall = AsyncCall<v1::AttendRequest, v1::AttendResponse, AttendCallback>;
using InfoCall = AsyncCall<v1::GetServerInfoRequest, v1::ServerInfo, ServerInfoCallback>;

class GrpcConnection final : public Connection {
 public:
  explicit GrpcConnection(std::shared_ptr<ChannelPool> pool) : pool_(std::move(pool)) {}

  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    v1::AttendRequest message;
    EncodeAttend(request, message);
    v1::AttendResponse reply;
    OneCall call(*pool_, options);
    const absl::Status status = call.Convert(call.lease().stub().Attend(&call.context(), message, &reply));
    if (!status.ok()) return status;
    return DecodeAttend(std::move(reply));
  }

  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    auto call = std::make_shared<AttendCall>(*pool_, options, std::move(done));
    EncodeAttend(request, call->request);
    call->one.lease().stub().async()->Attend(&call->one.context(), &call->request, &call->reply,
                                             [call](const grpc::Status& grpc_status) mutable {
                                               const CallbackScope scope;
                                               const std::shared_ptr<AttendCall> last = std::move(call);
                                               const absl::Status status = last->one.Convert(grpc_status);
                                               last->done(status.ok() ? DecodeAttend(std::move(last->reply)) : status);
                                             });
  }

  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    return MakeGrpcAttendStream(*pool_, options);
  }

  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) override {
    v1::ServerInfo reply;
    OneCall call(*pool_, options);
    const absl::Status status =
        call.Convert(call.lease().stub().GetServerInfo(&call.context(), v1::GetServerInfoRequest(), &reply));
    if (!status.ok()) return status;
    return DecodeServerInfo(reply);
  }

  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    auto call = std::make_shared<InfoCall>(*pool_, options, std::move(done));
    call->one.lease().stub().async()->GetServerInfo(&call->one.context(), &call->request, &call->reply,
                                                    [call](const grpc::Status& grpc_status) mutable {
                                                      const CallbackScope scope;
                                                      const std::shared_ptr<InfoCall> last = std::move(call);
                                                      const absl::Status status = last->one.Convert(grpc_status);
                                                      if (!status.ok()) return last->done(status);
                                                      last->done(DecodeServerInfo(last->reply));
                                                    });
  }

  absl::StatusOr<Health> CheckHealth(const std::string& service, const CallOptions& options) override {
    const std::string bytes = EncodeHealthRequest(service);
    const grpc::Slice request_slice(bytes);
    const grpc::ByteBuffer request(&request_slice, /*nslices=*/1);
    grpc::ByteBuffer reply;
    grpc::Status grpc_status;
    absl::Notification ended;
    OneCall call(*pool_, options);
    HealthStub(call.lease().channel())
        .UnaryCall(&call.context(), kHealthCheckMethod, {}, &request, &reply, [&](grpc::Status ended_with) {
          grpc_status = std::move(ended_with);
          ended.Notify();
        });
    ended.WaitForNotification();
    const absl::Status status = call.Convert(grpc_status);
    if (!status.ok()) return status;
    grpc::Slice reply_slice;
    if (!reply.DumpToSingleSlice(&reply_slice).ok()) return absl::InternalError("malformed health answer");
    const auto health =
        DecodeHealthResponse(absl::string_view(reinterpret_cast<const char*>(reply_slice.begin()), reply_slice.size()));
    if (!health) return absl::InternalError("malformed health answer");
    return *health;
  }

 private:
  const std::shared_ptr<ChannelPool> pool_;
};

}  // namespace

std::shared_ptr<Connection> MakeGrpcConnection(std::shared_ptr<ChannelPool> pool) {
  return std::make_shared<GrpcConnection>(std::move(pool));
}

}  // namespace triad::client
