// The methods of triad.v1.AttentionService as a generated stub has them, but for requests that are serialised already.
//
// They stand on what generated stubs stand on (grpc::internal), which gRPC keeps as it is for the sake of those. The
// public generic stubs know no blocking streams, and look a method up anew for every call.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/sync_stream.h"
#include "triad/v1/attention.grpc.pb.h"  // with what generated stubs stand on, at its place in this gRPC

namespace triad::client {

template <class Reply>
class UnaryMethod {
 public:
  // `name` outlives this.
  UnaryMethod(const char* name, std::shared_ptr<grpc::ChannelInterface> channel)
      : method_(name, grpc::internal::RpcMethod::NORMAL_RPC, channel), channel_(std::move(channel)) {}

  // Blocks until the call has ended.
  grpc::Status Call(grpc::ClientContext& context, const grpc::ByteBuffer& request, Reply& reply) const {
    return grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, Reply, grpc::ByteBuffer, google::protobuf::MessageLite>(
        channel_.get(), method_, &context, request, &reply);
  }

  // Borrows its arguments until `done` is called, on a thread of gRPC's.
  void CallAsync(grpc::ClientContext& context, const grpc::ByteBuffer& request, Reply& reply,
                 std::function<void(grpc::Status)> done) const {
    grpc::internal::CallbackUnaryCall<grpc::ByteBuffer, Reply, grpc::ByteBuffer, google::protobuf::MessageLite>(
        channel_.get(), method_, &context, &request, &reply, std::move(done));
  }

 private:
  const grpc::internal::RpcMethod method_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
};

template <class Reply>
class StreamMethod {
 public:
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, Reply>;

  // `name` outlives this.
  StreamMethod(const char* name, std::shared_ptr<grpc::ChannelInterface> channel)
      : method_(name, grpc::internal::RpcMethod::BIDI_STREAMING, channel), channel_(std::move(channel)) {}

  // Borrows `context` for the stream's life.
  std::unique_ptr<Stream> Open(grpc::ClientContext& context) const {
    return std::unique_ptr<Stream>(
        grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, Reply>::Create(channel_.get(), method_, &context));
  }

 private:
  const grpc::internal::RpcMethod method_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
};

// All functions of its members may be called from any thread.
struct AttentionMethods {
  explicit AttentionMethods(const std::shared_ptr<grpc::ChannelInterface>& channel)
      : attend("/triad.v1.AttentionService/Attend", channel),
        forward("/triad.v1.AttentionService/Forward", channel),
        get_server_info("/triad.v1.AttentionService/GetServerInfo", channel),
        attend_stream("/triad.v1.AttentionService/AttendStream", channel),
        forward_stream("/triad.v1.AttentionService/ForwardStream", channel) {}

  UnaryMethod<v1::AttendResponse> attend;
  UnaryMethod<v1::ForwardResponse> forward;
  UnaryMethod<v1::ServerInfo> get_server_info;
  StreamMethod<v1::AttendStreamResponse> attend_stream;
  StreamMethod<v1::ForwardStreamResponse> forward_stream;
};

}  // namespace triad::client
