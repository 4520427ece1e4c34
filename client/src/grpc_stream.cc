#include "client/src/grpc_stream.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/src/grpc_status.h"
#include "client/src/grpc_time.h"
#include "client/src/message_slices.h"
#include "client/src/stream_messages.h"
#include "grpcpp/client_context.h"

namespace triad::client {
namespace {

absl::Status StreamEnded() { return absl::UnavailableError("the stream has ended; Finish() says why"); }
absl::Status AfterHalfClose() { return absl::FailedPreconditionError("the stream takes no items after HalfClose()"); }

// gRPC lets one thread read while another writes; write_mu_ makes writers take turns.
// `Stream` is AttendStream or ForwardStream; `Item` and `Reply` are its messages.
template <class Stream, class Item, class Reply>
class GrpcStream final : public Stream {
 public:
  using Method = StreamMethod<Reply> AttentionMethods::*;

  GrpcStream(ChannelPool& pool, Method method, const StreamOptions& options)
      : lease_(pool.Pick()), on_stop_(options.cancel, [this] { context_.TryCancel(); }) {
    context_.set_deadline(GrpcDeadline(options.timeout));
    stream_ = (lease_.attention().*method).Open(context_);
  }

  ~GrpcStream() override {
    if (finished_) return;
    context_.TryCancel();
    Finish().IgnoreError();
  }

  absl::Status Send(uint64_t request_id, const typename Stream::Request& request, const ItemOptions& options) override {
    if (!(options.timeout > absl::ZeroDuration())) {
      return absl::InvalidArgumentError(
          absl::StrCat("ItemOptions::timeout must be > 0; was ", absl::FormatDuration(options.timeout)));
    }
    const grpc::ByteBuffer message = ToByteBuffer(EncodeItem<Item>(request_id, request, options.timeout));

    absl::MutexLock lock(&write_mu_);
    if (half_closed_) return AfterHalfClose();
    if (!AddInFlight(request_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("request_id must be unique among the items in flight; was ", request_id));
    }
    if (stream_->Write(message)) return absl::OkStatus();
    RemoveInFlight(request_id);
    return StreamEnded();
  }

  absl::Status Cancel(uint64_t request_id) override {
    absl::MutexLock lock(&write_mu_);
    if (half_closed_) return AfterHalfClose();
    if (!IsInFlight(request_id)) return absl::OkStatus();
    Item message;
    message.set_request_id(request_id);
    message.mutable_cancel();
    return stream_->Write(ToByteBuffer(MessageParts(message))) ? absl::OkStatus() : StreamEnded();
  }

  absl::Status HalfClose() override {
    absl::MutexLock lock(&write_mu_);
    if (half_closed_) return absl::OkStatus();
    half_closed_ = true;
    return stream_->WritesDone() ? absl::OkStatus() : StreamEnded();
  }

  std::optional<typename Stream::Answer> Next() override {
    Reply message;
    if (finished_ || !stream_->Read(&message)) return std::nullopt;
    RemoveInFlight(message.request_id());
    return DecodeAnswer<typename Stream::Answer>(std::move(message));
  }

  absl::Status Finish() override {
    if (finished_) return *finished_;
    HalfClose().IgnoreError();  // a stream that has ended already says so below
    Reply unread;
    while (stream_->Read(&unread)) {
    }
    finished_ = FromGrpc(stream_->Finish(), context_);
    return *finished_;
  }

 private:
  bool AddInFlight(uint64_t id) ABSL_LOCKS_EXCLUDED(ids_mu_) {
    absl::MutexLock lock(&ids_mu_);
    return in_flight_.insert(id).second;
  }
  bool IsInFlight(uint64_t id) ABSL_LOCKS_EXCLUDED(ids_mu_) {
    absl::MutexLock lock(&ids_mu_);
    return in_flight_.contains(id);
  }
  void RemoveInFlight(uint64_t id) ABSL_LOCKS_EXCLUDED(ids_mu_) {
    absl::MutexLock lock(&ids_mu_);
    in_flight_.erase(id);
  }

  const ChannelPool::Lease lease_;
  grpc::ClientContext context_;
  std::unique_ptr<typename StreamMethod<Reply>::Stream> stream_;
  std::optional<absl::Status> finished_;  // reader's thread only

  absl::Mutex write_mu_;  // held while a message is written, which may block; the order of writes
  bool half_closed_ ABSL_GUARDED_BY(write_mu_) = false;

  absl::Mutex ids_mu_;  // never held while anything blocks; after write_mu_
  absl::flat_hash_set<uint64_t> in_flight_ ABSL_GUARDED_BY(ids_mu_);

  std::stop_callback<std::function<void()>> on_stop_;  // last member: gone before the context it cancels
};

}  // namespace

std::unique_ptr<AttendStream> MakeGrpcAttendStream(ChannelPool& pool, const StreamOptions& options) {
  using Stream = GrpcStream<AttendStream, v1::AttendStreamRequest, v1::AttendStreamResponse>;
  return std::make_unique<Stream>(pool, &AttentionMethods::attend_stream, options);
}

std::unique_ptr<ForwardStream> MakeGrpcForwardStream(ChannelPool& pool, const StreamOptions& options) {
  using Stream = GrpcStream<ForwardStream, v1::ForwardStreamRequest, v1::ForwardStreamResponse>;
  return std::make_unique<Stream>(pool, &AttentionMethods::forward_stream, options);
}

}  // namespace triad::client
