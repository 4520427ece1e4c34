// A stream of items, each answered on its own: what AttendStream and ForwardStream share.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "server/job.h"
#include "server/peer_name.h"
#include "server/rpc_status.h"
#include "server/serving_context.h"
#include "server/stream_state.h"
#include "server/unknown_fields.h"

namespace triad {

// Request: {request_id, oneof {request, cancel}, timeout}; Reply: {request_id, oneof {response, error}}.
//
// Lifetime. Shared by: itself from Open to OnDone, the registry, every task's done, and whoever is in Pump. gRPC calls
// OnDone once, after Finish and after every other reaction has returned. Finish is called by Pump only, and only when
// no item is unanswered, so no task outlives its stream's call.
//
// Threads. Reactions and tasks' ends come from any thread; they change state_ under mu_ and call Pump. At most one
// thread is in Pump's loop, and only there are operations started on the gRPC stream, so no start can race with Finish.
template <class Request, class Reply>
class ItemStream final : public grpc::ServerBidiReactor<Request, Reply>,
                         public OpenStream,
                         public std::enable_shared_from_this<ItemStream<Request, Reply>> {
 public:
  using ItemRequest = std::decay_t<decltype(std::declval<const Request&>().request())>;
  using ItemResponse = std::decay_t<decltype(std::declval<const Reply&>().response())>;

  // `make` makes the task that answers an item.
  ItemStream(grpc::CallbackServerContext& rpc, Method method, MakeTask<ItemRequest, ItemResponse> make,
             ServingContext& context)
      : context_(context),
        rpc_(rpc),
        method_(method),
        make_(make),
        peer_(PeerName(rpc.peer())),
        deadline_(DeadlineOf(rpc, context.clock.Now())) {}

  // Once, before gRPC gets the stream; ends it at once when the registry has no room.
  void Open() {
    self_ = this->shared_from_this();
    context_.metrics.OnStreamOpened();
    absl::Status status = context_.streams.Add(self_);
    if (status.ok()) return Pump();
    context_.metrics.OnAnswered({.method = method_, .code = status.code()});
    AddRetryPushback(rpc_, status, [this] { return context_.scheduler.retry_after(); });
    {
      MutexLock lock(mu_);
      state_.is_finished = true;
    }
    this->Finish(ToGrpc(status));
  }

  void BeginDrain() override {
    {
      MutexLock lock(mu_);
      state_.is_draining = true;
    }
    Pump();
  }

 private:
  struct Item {
    std::unique_ptr<Request> frame;
    std::unique_ptr<Reply> reply;
    InFlightLedger::Hold hold;  // until the reply has left
    Time received;
    Time deadline = kNever;
    TaskId task = 0;
    Time answered;
  };

  // gRPC does not tell a client's half-close from a frame that cannot be parsed: both end a read with false. But
  // parsing clears the message first, so a mark in it survives only where there was nothing to parse. The mark is an
  // unknown field of number 0, which parsers refuse: no frame can bring it along.
  static void MarkUntouched(Request& frame) {
    frame.GetReflection()->MutableUnknownFields(&frame)->AddVarint(/*number=*/0, /*value=*/0);
  }
  static bool IsUntouched(const Request& frame) {
    const google::protobuf::UnknownFieldSet& unknown = frame.GetReflection()->GetUnknownFields(frame);
    return !unknown.empty() && unknown.field(0).number() == 0;
  }

  void OnReadDone(bool ok) override {
    std::unique_ptr<Request> frame;
    {
      MutexLock lock(mu_);
      frame = std::move(incoming_);
      state_.is_reading = false;
      if (!ok) {
        state_.is_half_closed = true;
        state_.is_unreadable = !IsUntouched(*frame);
      }
      // A stream that ended while this read was with gRPC has said UNAVAILABLE: the frame was not accepted.
      state_.is_taking = ok && !state_.is_finished;
      ok = state_.is_taking;
    }
    if (ok) Take(std::move(frame));
    {
      MutexLock lock(mu_);
      state_.is_taking = false;
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    std::unique_ptr<Item> written;
    {
      MutexLock lock(mu_);
      written = std::move(outgoing_);
      state_.is_writing = false;
      --state_.unanswered;
    }
    if (!ok) Break();
    context_.metrics.OnReplied(context_.clock.Now() - written->answered);
    written.reset();
    Pump();
  }

  void OnCancel() override {
    Break();
    Pump();
  }

  void OnDone() override {
    context_.streams.Remove(this);
    context_.metrics.OnStreamClosed();
    const std::shared_ptr<ItemStream> last = std::move(self_);
  }

  void Take(std::unique_ptr<Request> frame);
  void Submit(Item& item, uint64_t id);
  void CancelItem(uint64_t id);
  // Ends the item with `id` that is in flight.
  void OnItemDone(uint64_t id, absl::Status status);
  // Answers what never became an item in flight.
  void Refuse(std::unique_ptr<Request> frame, Time received, absl::Status status);
  void Answer(std::unique_ptr<Item> item, absl::Status status);
  // The client is gone: drops replies and cancels what is in flight.
  void Break();
  void Pump();

  ServingContext& context_;
  grpc::CallbackServerContext& rpc_;
  const Method method_;
  const MakeTask<ItemRequest, ItemResponse> make_;
  const std::string peer_;
  const Time deadline_;               // of the whole stream
  std::shared_ptr<ItemStream> self_;  // from Open to OnDone

  Mutex mu_;  // guards all below
  StreamState state_ ABSL_GUARDED_BY(mu_);
  bool is_pumping_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Request> incoming_ ABSL_GUARDED_BY(mu_);                              // gRPC's while is_reading
  std::unique_ptr<Item> outgoing_ ABSL_GUARDED_BY(mu_);                                 // gRPC's while is_writing
  std::unordered_map<uint64_t, std::unique_ptr<Item>> in_flight_ ABSL_GUARDED_BY(mu_);  // by request_id
  std::deque<std::unique_ptr<Item>> ready_ ABSL_GUARDED_BY(mu_);                        // state_.ready of them
};

// Serves one stream by the rules of AttendStream (attention.proto). The result belongs to gRPC and deletes itself.
template <class Request, class Reply>
grpc::ServerBidiReactor<Request, Reply>* StartItemStream(
    grpc::CallbackServerContext& rpc, Method method,
    MakeTask<typename ItemStream<Request, Reply>::ItemRequest, typename ItemStream<Request, Reply>::ItemResponse> make,
    ServingContext& context) {
  const auto stream = std::make_shared<ItemStream<Request, Reply>>(rpc, method, make, context);
  stream->Open();
  return stream.get();  // keeps itself until gRPC is done with it
}

}  // namespace triad

#include "server/item_stream-inl.h"
