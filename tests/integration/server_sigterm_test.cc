// A server process that is told to end while clients send as fast as it answers.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/layer_source.h"
#include "tests/support/await_true.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_pages.h"
#include "tests/support/server_process.h"
#include "tests/support/server_requests.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad {
namespace {

using ::testing::HasSubstr;
using Stub = v1::AttentionService::Stub;

// What a client has seen of its calls or items, which it sends one after the other until one is refused.
struct Seen {
  std::atomic<int64_t> answers{0};
  std::atomic<bool> is_over{false};  // the rest is written
  grpc::Status refusal;
  grpc::Status stream_end;
};

// With a connection of its own that stands: while it is made, gRPC 1.51 may see an error that is none (it looks at
// errno late), and no call is to end by that.
std::unique_ptr<Stub> Connect(const ServerProcess& server) {
  const auto channel = server.NewChannel();
  // A server that is gone fails the test instead of hanging it.
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1)));
  return v1::AttentionService::NewStub(channel);
}

template <class Response, class Call>
void SendCalls(Call call, Seen& seen) {
  for (;;) {
    grpc::ClientContext context;
    Response response;
    seen.refusal = call(context, response);
    if (!seen.refusal.ok()) return;
    ++seen.answers;
  }
}

template <class Frame, class Reply, class Stream, class Request>
void SendItems(const std::unique_ptr<Stream>& stream, const Request& request, Seen& seen) {
  Frame frame;
  *frame.mutable_request() = request;
  Reply reply;
  while (stream->Write(frame) && stream->Read(&reply) && reply.has_response()) {
    ++seen.answers;
    frame.set_request_id(frame.request_id() + 1);
  }
  stream->WritesDone();
  seen.refusal = grpc::Status(static_cast<grpc::StatusCode>(reply.error().code()), reply.error().message());
  EXPECT_FALSE(reply.has_error() && stream->Read(&reply)) << "an answer after the last one";
  seen.stream_end = stream->Finish();
  // The stream may end before the server takes the item.
  if (seen.refusal.ok()) seen.refusal = seen.stream_end;
}

v1::AttendRequest SmallAttend() { return MakeRequest({.q_len = 16, .kv_len = 16}, /*seed=*/1); }
v1::ForwardRequest SmallForward() { return MakeForwardRequest(kDemoLayerName, /*seed=*/1, {.tokens = 2, .dim = 512}); }

void Attend(Stub& stub, Seen& seen) {
  SendCalls<v1::AttendResponse>(
      [&](grpc::ClientContext& context, auto& response) { return stub.Attend(&context, SmallAttend(), &response); },
      seen);
}

void Forward(Stub& stub, Seen& seen) {
  SendCalls<v1::ForwardResponse>(
      [&](grpc::ClientContext& context, auto& response) { return stub.Forward(&context, SmallForward(), &response); },
      seen);
}

void AttendStream(Stub& stub, Seen& seen) {
  grpc::ClientContext context;
  SendItems<v1::AttendStreamRequest, v1::AttendStreamResponse>(stub.AttendStream(&context), SmallAttend(), seen);
}

void ForwardStream(Stub& stub, Seen& seen) {
  grpc::ClientContext context;
  SendItems<v1::ForwardStreamRequest, v1::ForwardStreamResponse>(stub.ForwardStream(&context), SmallForward(), seen);
}

// Clients of one method, in the background.
class Clients {
 public:
  Clients(const ServerProcess& server, const char* method, void (*send)(Stub&, Seen&)) : method_(method) {
    for (Seen& seen : seen_) {
      threads_.emplace_back([&server, send, &seen] {
        send(*Connect(server), seen);
        seen.is_over = true;
      });
    }
  }
  // Until each has been answered so often that it is in full swing.
  void AwaitLoad() const {
    for (const Seen& seen : seen_) {
      AwaitTrue([&] { return seen.answers >= 5 || seen.is_over; });
      EXPECT_FALSE(seen.is_over) << method_ << ", after " << seen.answers << " answers: " << seen.refusal.error_code()
                                 << ": " << seen.refusal.error_message();
    }
  }
  // Until the last is refused.
  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }
  // All that the server answered came here, but for `elsewhere`; and whoever was refused was told why.
  void ExpectNothingLost(const ServerProcess& server, int64_t elsewhere) const {
    SCOPED_TRACE(method_);
    int64_t answers = elsewhere;
    for (const Seen& seen : seen_) {
      answers += seen.answers;
      EXPECT_EQ(seen.refusal.error_code(), grpc::UNAVAILABLE) << seen.refusal.error_message();
      EXPECT_THAT(seen.refusal.error_message(), HasSubstr("draining"));
      EXPECT_THAT(seen.stream_end.error_code(), ::testing::AnyOf(grpc::OK, grpc::UNAVAILABLE));
    }
    EXPECT_EQ(Requests(server, "OK"), answers);
    for (const char* code : {"CANCELLED", "INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}) {
      EXPECT_LE(Requests(server, code), 0) << code;
    }
  }

 private:
  double Requests(const ServerProcess& server, const char* code) const {
    return ReadMetric(server.http_address(),
                      absl::StrCat("triad_requests_total{code=\"", code, "\",method=\"", method_, "\"}"));
  }

  const char* const method_;
  std::vector<Seen> seen_ = std::vector<Seen>(3);  // one for each client
  std::vector<std::thread> threads_;
};

// A client that reads its reply, of 4 MiB, only when the test lets it. Until then the server has something to wait for,
// and answers all others.
class LateReader {
 public:
  explicit LateReader(const ServerProcess& server) : stub_(Connect(server)) {
    v1::AttendStreamRequest frame;
    *frame.mutable_request() =
        MakeRequest({.q_len = 1024, .kv_len = 1024, .heads = 1, .kv_heads = 1, .head_dim = 1}, /*seed=*/1);
    frame.mutable_request()->set_return_weights(true);
    EXPECT_TRUE(stream_->Write(frame));
    AwaitTrue([&] { return ReadMetric(server.http_address(), kAnswered) == 1; });
  }
  void ReadToTheEnd() {
    v1::AttendStreamResponse reply;
    ASSERT_TRUE(stream_->Read(&reply));
    EXPECT_EQ(reply.response().weights().data().size(), size_t{4} << 20) << reply.error().ShortDebugString();
    EXPECT_FALSE(stream_->Read(&reply));
    EXPECT_EQ(stream_->Finish().error_code(), grpc::UNAVAILABLE);
  }

 private:
  static constexpr char kAnswered[] = R"(triad_requests_total{code="OK",method="AttendStream"})";
  grpc::ClientContext context_;
  const std::unique_ptr<Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AttendStreamRequest, v1::AttendStreamResponse>> stream_ =
      stub_->AttendStream(&context_);
};

// Whoever comes, for longer than the server would stay when it had nothing to wait for (kLameDuck and kCloseGrace of
// server.cc).
void ExpectItStaysAndRefuses(const ServerProcess& server) {
  for (int i = 0; i < 500; ++i) {
    grpc::ClientContext context;
    v1::AttendResponse response;
    const grpc::Status status = Connect(server)->Attend(&context, SmallAttend(), &response);
    ASSERT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
    ASSERT_THAT(status.error_message(), HasSubstr("draining"));
  }
}

TEST(ServerSigtermTest, NoAcceptedRequestIsLostUnderLoad) {
  ServerProcess server({"--demo_layer=true", "--max_inline_flop=0", "--drain_timeout=1h"});
  LateReader late(server);
  Clients attend(server, "Attend", Attend);
  Clients forward(server, "Forward", Forward);
  Clients attend_stream(server, "AttendStream", AttendStream);
  Clients forward_stream(server, "ForwardStream", ForwardStream);
  for (Clients* clients : {&attend, &forward, &attend_stream, &forward_stream}) clients->AwaitLoad();
  server.BeginStop();
  for (Clients* clients : {&attend, &forward, &attend_stream, &forward_stream}) clients->Join();
  for (Clients* clients : {&attend, &forward, &forward_stream}) clients->ExpectNothingLost(server, /*elsewhere=*/0);
  attend_stream.ExpectNothingLost(server, /*elsewhere=*/1);
  ExpectItStaysAndRefuses(server);
  late.ReadToTheEnd();
  EXPECT_EQ(server.Stop(), 0) << "everything accepted has been answered";
}

}  // namespace
}  // namespace triad
