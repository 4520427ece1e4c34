#include "client/src/grpc_connection.h"

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/src/attend_messages.h"
#include "client/src/callback_scope.h"
#include "client/src/forward_messages.h"
#include "client/src/grpc_status.h"
#include "client/src/grpc_stream.h"
#include "client/src/grpc_time.h"
#include "client/src/health_check.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace triad::client {
namespace {

using HealthStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;
using Attention = v1::AttentionService;
using Layers = v1::LayerService;

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
template <class Message, class Reply, class Callback>
struct AsyncCall {
  AsyncCall(ChannelPool& pool, const CallOptions& options, Callback callback)
      : one(pool, options), done(std::move(callback)) {}

  OneCall one;
  Message message;
  Reply reply;
  const Callback done;
};

// The two forms of a unary method in generated code.
template <class Stub, class Message, class Reply>
using Blocking = grpc::Status (Stub::*)(grpc::ClientContext*, const Message&, Reply*);
template <class Message, class Reply>
using WithCallback = void (Attention::StubInterface::async_interface::*)(grpc::ClientContext*, const Message*, Reply*,
                                                                         std::function<void(grpc::Status)>);

template <class Message>
Message NameLayer(const LayerName& layer) {
  Message message;
  message.set_name(layer.name);
  if (layer.version) message.set_version(*layer.version);
  return message;
}

class GrpcConnection final : public Connection {
 public:
  explicit GrpcConnection(std::shared_ptr<ChannelPool> pool) : pool_(std::move(pool)) {}

  absl::StatusOr<AttendResponse> Attend(const AttendRequest& request, const CallOptions& options) override {
    v1::AttendRequest message;
    Encode(request, message);
    v1::AttendResponse reply;
    const absl::Status status = Call(&Attention::Stub::Attend, message, options, reply);
    if (!status.ok()) return status;
    return Decode(std::move(reply));
  }

  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    auto call = NewCall<v1::AttendRequest, v1::AttendResponse>(options, std::move(done));
    Encode(request, call->message);
    Start(&Attention::StubInterface::async_interface::Attend, std::move(call));
  }

  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    return MakeGrpcAttendStream(*pool_, options);
  }

  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options) override {
    v1::ForwardRequest message;
    Encode(request, message);
    v1::ForwardResponse reply;
    const absl::Status status = Call(&Attention::Stub::Forward, message, options, reply);
    if (!status.ok()) return status;
    return Decode(std::move(reply));
  }

  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) override {
    auto call = NewCall<v1::ForwardRequest, v1::ForwardResponse>(options, std::move(done));
    Encode(request, call->message);
    Start(&Attention::StubInterface::async_interface::Forward, std::move(call));
  }

  absl::StatusOr<std::unique_ptr<ForwardStream>> OpenForwardStream(const StreamOptions& options) override {
    return MakeGrpcForwardStream(*pool_, options);
  }

  absl::StatusOr<std::vector<Layer>> ListLayers(const std::string& name, const CallOptions& options) override {
    v1::ListLayersRequest message;
    message.set_name(name);
    v1::ListLayersResponse reply;
    const absl::Status status = Call(&Layers::Stub::ListLayers, message, options, reply);
    if (!status.ok()) return status;
    return Decode(reply);
  }

  absl::StatusOr<Layer> GetLayer(const LayerName& layer, const CallOptions& options) override {
    v1::Layer reply;
    const absl::Status status = Call(&Layers::Stub::GetLayer, NameLayer<v1::GetLayerRequest>(layer), options, reply);
    if (!status.ok()) return status;
    return Decode(reply);
  }

  absl::StatusOr<Layer> LoadLayer(const LayerName& layer, const CallOptions& options) override {
    v1::LoadLayerResponse reply;
    const absl::Status status = Call(&Layers::Stub::LoadLayer, NameLayer<v1::LoadLayerRequest>(layer), options, reply);
    if (!status.ok()) return status;
    return Decode(reply.layer());
  }

  absl::Status UnloadLayer(const LayerName& layer, const CallOptions& options) override {
    v1::UnloadLayerResponse reply;
    return Call(&Layers::Stub::UnloadLayer, NameLayer<v1::UnloadLayerRequest>(layer), options, reply);
  }

  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options) override {
    v1::ServerInfo reply;
    const absl::Status status = Call(&Attention::Stub::GetServerInfo, v1::GetServerInfoRequest(), options, reply);
    if (!status.ok()) return status;
    return Decode(reply);
  }

  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    Start(&Attention::StubInterface::async_interface::GetServerInfo,
          NewCall<v1::GetServerInfoRequest, v1::ServerInfo>(options, std::move(done)));
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
  // Makes one call and waits for its answer.
  template <class Stub, class Message, class Reply>
  absl::Status Call(Blocking<Stub, Message, Reply> method, const Message& message, const CallOptions& options,
                    Reply& reply) {
    OneCall call(*pool_, options);
    return call.Convert((StubOf<Stub>(call.lease()).*method)(&call.context(), message, &reply));
  }

  template <class Stub>
  static Stub& StubOf(const ChannelPool::Lease& lease) {
    if constexpr (std::is_same_v<Stub, Layers::Stub>) {
      return lease.layers();
    } else {
      return lease.attention();
    }
  }

  template <class Message, class Reply, class Callback>
  std::shared_ptr<AsyncCall<Message, Reply, Callback>> NewCall(const CallOptions& options, Callback done) {
    return std::make_shared<AsyncCall<Message, Reply, Callback>>(*pool_, options, std::move(done));
  }

  // Makes one call without waiting: its callback gets the decoded reply.
  template <class Message, class Reply, class Callback>
  static void Start(WithCallback<Message, Reply> method, std::shared_ptr<AsyncCall<Message, Reply, Callback>> call) {
    AsyncCall<Message, Reply, Callback>& started = *call;
    (started.one.lease().attention().async()->*method)(
        &started.one.context(), &started.message, &started.reply,
        [call = std::move(call)](const grpc::Status& grpc_status) mutable {
          const CallbackScope scope;
          const auto last = std::move(call);
          const absl::Status status = last->one.Convert(grpc_status);
          if (!status.ok()) return last->done(status);
          last->done(Decode(std::move(last->reply)));
        });
  }

  const std::shared_ptr<ChannelPool> pool_;
};

}  // namespace

std::shared_ptr<Connection> MakeGrpcConnection(std::shared_ptr<ChannelPool> pool) {
  return std::make_shared<GrpcConnection>(std::move(pool));
}

}  // namespace triad::client
