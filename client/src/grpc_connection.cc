#include "client/src/grpc_connection.h"

#include <functional>
#include <optional>
#include <string>
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
#include "client/src/message_slices.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace triad::client {
namespace {

using HealthStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;
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
template <class Reply, class Callback>
struct AsyncCall {
  AsyncCall(ChannelPool& pool, const CallOptions& options, const MessageParts& parts, Callback callback)
      : one(pool, options), message(ToByteBuffer(parts)), done(std::move(callback)) {}

  OneCall one;
  grpc::ByteBuffer message;
  Reply reply;
  const Callback done;
};

template <class Reply>
using AttentionMethod = UnaryMethod<Reply> AttentionMethods::*;
template <class Message, class Reply>
using LayersMethod = grpc::Status (v1::LayerService::Stub::*)(grpc::ClientContext*, const Message&, Reply*);

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
    return Call<AttendResponse>(&AttentionMethods::attend, Encode(request), options);
  }

  void AttendAsync(const AttendRequest& request, const CallOptions& options, AttendCallback done) override {
    Start(&AttentionMethods::attend, Encode(request), options, std::move(done));
  }

  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions& options) override {
    return MakeGrpcAttendStream(*pool_, options);
  }

  absl::StatusOr<ForwardResponse> Forward(const ForwardRequest& request, const CallOptions& options) override {
    return Call<ForwardResponse>(&AttentionMethods::forward, Encode(request), options);
  }

  void ForwardAsync(const ForwardRequest& request, const CallOptions& options, ForwardCallback done) override {
    Start(&AttentionMethods::forward, Encode(request), options, std::move(done));
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
    return Call<ServerInfo>(&AttentionMethods::get_server_info, MessageParts(v1::GetServerInfoRequest()), options);
  }

  void GetServerInfoAsync(const CallOptions& options, ServerInfoCallback done) override {
    Start(&AttentionMethods::get_server_info, MessageParts(v1::GetServerInfoRequest()), options, std::move(done));
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
  template <class Response, class Reply>
  absl::StatusOr<Response> Call(AttentionMethod<Reply> method, const MessageParts& parts, const CallOptions& options) {
    Reply reply;
    OneCall call(*pool_, options);
    const grpc::Status status = (call.lease().attention().*method).Call(call.context(), ToByteBuffer(parts), reply);
    if (!status.ok()) return call.Convert(status);
    return Decode(std::move(reply));
  }
  template <class Message, class Reply>
  absl::Status Call(LayersMethod<Message, Reply> method, const Message& message, const CallOptions& options,
                    Reply& reply) {
    OneCall call(*pool_, options);
    return call.Convert((call.lease().layers().*method)(&call.context(), message, &reply));
  }

  // Makes one call without waiting: its callback gets the decoded reply.
  template <class Reply, class Callback>
  void Start(AttentionMethod<Reply> method, const MessageParts& parts, const CallOptions& options, Callback done) {
    auto call = std::make_shared<AsyncCall<Reply, Callback>>(*pool_, options, parts, std::move(done));
    AsyncCall<Reply, Callback>& started = *call;
    (started.one.lease().attention().*method)
        .CallAsync(started.one.context(), started.message, started.reply,
                   [call = std::move(call)](const grpc::Status& grpc_status) mutable {
                     const CallbackScope scope;
                     const auto last = std::move(call);
                     last->message.Clear();  // what `done` starts finds the memory free
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
