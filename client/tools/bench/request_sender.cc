#include "client/tools/bench/request_sender.h"

#include <map>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace triad::tools {
namespace {

template <class Response>
Reply ToReply(absl::StatusOr<Response> response) {
  if (!response.ok()) return {.status = std::move(response).status()};
  Reply reply{.status = absl::OkStatus(), .timings = response->timings, .output = std::move(response->output)};
  if constexpr (std::is_same_v<Response, client::ForwardResponse>) reply.layer_version = response->version;
  return reply;
}

class UnarySender final : public RequestSender {
 public:
  UnarySender(client::Client client, const RequestBuilder& builder, const SenderOptions& options)
      : client_(std::move(client)), builder_(builder), options_{.timeout = options.timeout, .cancel = options.cancel} {}

  absl::Status Send(const PlannedRequest& request, ReplyCallback done) override {
    if (builder_.workload().kind == Workload::Kind::kAttend) {
      client_.AttendAsync(builder_.Attend(request), options_,
                          [done = std::move(done)](auto response) { done(ToReply(std::move(response))); });
    } else {
      client_.ForwardAsync(builder_.Forward(request), options_,
                           [done = std::move(done)](auto response) { done(ToReply(std::move(response))); });
    }
    return absl::OkStatus();
  }

 private:
  const client::Client client_;
  const RequestBuilder& builder_;
  const client::CallOptions options_;
};

// The reader thread takes answers to whoever waits for them; when the stream ends early, its status goes to the rest.
template <class Stream>
class StreamSender final : public RequestSender {
 public:
  StreamSender(std::unique_ptr<Stream> stream, const RequestBuilder& builder, absl::Duration timeout)
      : stream_(std::move(stream)), builder_(builder), options_{.timeout = timeout}, reader_([this] { Read(); }) {}

  ~StreamSender() override {
    stream_->HalfClose().IgnoreError();  // a stream that has ended has told the waiting ones
    reader_.join();
  }

  absl::Status Send(const PlannedRequest& request, ReplyCallback done) override {
    const auto item = [&] {
      if constexpr (std::is_same_v<Stream, client::AttendStream>) {
        return builder_.Attend(request);
      } else {
        return builder_.Forward(request);
      }
    }();
    uint64_t id = 0;
    {
      MutexLock lock(mu_);
      if (has_ended_) return absl::UnavailableError("the stream has ended");
      id = next_id_++;
      waiting_.emplace(id, std::move(done));
    }
    const absl::Status status = stream_->Send(id, item, options_);
    if (status.ok()) return status;
    // Whoever takes the entry out answers for it: the reader may have been quicker, when the stream broke.
    return Take(id) ? status : absl::OkStatus();
  }

 private:
  std::optional<ReplyCallback> Take(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return std::nullopt;
    ReplyCallback done = std::move(found->second);
    waiting_.erase(found);
    return done;
  }

  void Read() ABSL_LOCKS_EXCLUDED(mu_) {
    while (auto answer = stream_->Next()) {
      const auto done = Take(answer->request_id);
      if (done) (*done)(ToReply(std::move(answer->response)));
    }
    const absl::Status end = stream_->Finish();
    std::map<uint64_t, ReplyCallback> unanswered;
    {
      MutexLock lock(mu_);
      has_ended_ = true;
      unanswered.swap(waiting_);
    }
    for (const auto& [id, done] : unanswered) {
      done({.status = end.ok() ? absl::UnavailableError("the stream ended without an answer") : end});
    }
  }

  const std::unique_ptr<Stream> stream_;
  const RequestBuilder& builder_;
  const client::ItemOptions options_;

  Mutex mu_;  // guards what follows, up to the thread
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, ReplyCallback> waiting_ ABSL_GUARDED_BY(mu_);

  std::thread reader_;  // last: begins once the rest is there
};

}  // namespace

std::unique_ptr<RequestSender> MakeUnarySender(client::Client client, const RequestBuilder& builder,
                                               const SenderOptions& options) {
  return std::make_unique<UnarySender>(std::move(client), builder, options);
}

absl::StatusOr<std::unique_ptr<RequestSender>> MakeStreamSender(const client::Client& client,
                                                                const RequestBuilder& builder,
                                                                const SenderOptions& options) {
  const auto make = [&](auto stream) -> absl::StatusOr<std::unique_ptr<RequestSender>> {
    if (!stream.ok()) return stream.status();
    using Stream = typename std::decay_t<decltype(*stream)>::element_type;
    return std::make_unique<StreamSender<Stream>>(*std::move(stream), builder, options.timeout);
  };
  return builder.workload().kind == Workload::Kind::kAttend
             ? make(client.OpenAttendStream({.cancel = options.cancel}))
             : make(client.OpenForwardStream({.cancel = options.cancel}));
}

}  // namespace triad::tools
