#include "client/src/grpc_attend_stream.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/src/attend_messages.h"
#include "client/src/grpc_status.h"
#include "client/src/grpc_time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"

namespace triad::client {
namespace {

absl::Status StreamEnded() { return absl::UnavailableError("the stream has ended; Finish() says why"); }
absl::Status AfterHalfClose() { return absl::FailedPreconditionError("the stream takes no items after HalfClose()"); }

void EncodeTimeout(absl::Duration timeout, google::protobuf::Duration& message) {
  absl::Duration rest;
  message.set_seconds(absl::IDivDuration(timeout, absl::Seconds(1), &rest));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

// gRPC lets one thread read while another writes; write_mu_ makes writers take turns.
class GrpcAttendStream final : public AttendStream {
 public:
  GrpcAttendStream(ChannelPool& pool, const StreamOptions& options)
      : lease_(pool.Pick()), on_stop_(options.cancel, [this] { context_.TryCancel(); }) {
    context_.set_deadline(GrpcDeadline(options.timeout));
    stream_ = lease_.stub().AttendStream(&context_);
  }

  ~GrpcAttendStream() override {
    if (finished_) return;
    context_.TryCancel();
    Finish().IgnoreError();
  }

  absl::Status Send(uint64_t request_id, const AttendRequest& request, const ItemOptions& options) override {
    if (!(options.timeout > absl::ZeroDuration())) {
      return absl::InvalidArgumentError(
          absl::StrCat("ItemOptions::timeout must be > 0; was ", absl::FormatDuration(options.timeout)));
    }
    v1::AttendStreamRequest message;
    message.set_request_id(request_id);
    if (options.timeout < absl::InfiniteDuration()) EncodeTimeout(options.timeout, *message.mutable_timeout());
    EncodeAttend(request, *message.mutable_request());

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
    v1::AttendStreamRequest message;
    message.set_request_id(request_id);
    message.mutable_cancel();
    return stream_->Write(message) ? absl::OkStatus() : StreamEnded();
  }

  absl::Status HalfClose() override {
    absl::MutexLock lock(&write_mu_);
    if (half_closed_) return absl::OkStatus();
    half_closed_ = true;
    return stream_->WritesDone() ? absl::OkStatus() : StreamEnded();
  }

  std::optional<AttendAnswer> Next() override {
    v1::AttendStreamResponse message;
    if (finished_ || !stream_->Read(&message)) return std::nullopt;
    RemoveInFlight(message.request_id());
    return DecodeAnswer(std::move(message));
  }

  absl::Status Finish() override {
    if (finished_) return *finished_;
    HalfClose().IgnoreError();  // a stream that has ended already says so below
    v1::AttendStreamResponse unread;
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
  std::unique_ptr<grpc::ClientReaderWriter<v1::AttendStreamRequest, v1::AttendStreamResponse>> stream_;
  std::optional<absl::Status> finished_;  // reader's thread only

  absl::Mutex write_mu_;  // held while a message is written, which may block; the order of writes
  bool half_closed_ ABSL_GUARDED_BY(write_mu_) = false;

  absl::Mutex ids_mu_;  // never held while anything blocks; after write_mu_
  absl::flat_hash_set<uint64_t> in_flight_ ABSL_GUARDED_BY(ids_mu_);

  std::stop_callback<std::function<void()>> on_stop_;  // last member: gone before the context it cancels
};

}  // namespace

std::unique_ptr<AttendStream> MakeGrpcAttendStream(ChannelPool& pool, const StreamOptions& options) {
  return std::make_unique<GrpcAttendStream>(pool, options);
}

}  // namespace triad::client
