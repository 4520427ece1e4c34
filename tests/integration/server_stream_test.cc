// The rules of AttendStream, one by one.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

v1::AttendStreamRequest Frame(uint64_t id, const v1::AttendRequest& request = OneItemRequest()) {
  v1::AttendStreamRequest frame;
  frame.set_request_id(id);
  *frame.mutable_request() = request;
  return frame;
}

v1::AttendStreamRequest CancelFrame(uint64_t id) {
  v1::AttendStreamRequest frame;
  frame.set_request_id(id);
  frame.mutable_cancel();
  return frame;
}

class ServerStreamTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AttendStreamRequest, v1::AttendStreamResponse>;

  void Start(ServerOptions options = TestServerOptions()) {
    options.threads = 1;
    options.max_inline_flop = 0;
    server_ = std::make_unique<TestServer>(options, MakeGateKernel(gate_));
    stub_ = server_->NewStub();
    stream_ = stub_->AttendStream(&context_);
  }
  void TearDown() override {
    gate_->Open();
    stream_.reset();  // before its context and its server
  }

  v1::AttendStreamResponse Read() {
    v1::AttendStreamResponse reply;
    EXPECT_TRUE(stream_->Read(&reply)) << "the stream ended: " << stream_->Finish().error_message();
    return reply;
  }
  // The next reply is an error of item `id`.
  void ExpectError(uint64_t id, grpc::StatusCode code, const std::string& words) {
    const v1::AttendStreamResponse reply = Read();
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_EQ(reply.error().code(), code) << reply.ShortDebugString();
    EXPECT_THAT(reply.error().message(), HasSubstr(words));
  }
  void ExpectAnswer(uint64_t id) {
    const v1::AttendStreamResponse reply = Read();
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_TRUE(reply.has_response()) << reply.ShortDebugString();
  }
  // Ends the stream; every reply has been read.
  grpc::Status Close() {
    stream_->WritesDone();
    v1::AttendStreamResponse reply;
    EXPECT_FALSE(stream_->Read(&reply)) << "a reply too many: " << reply.ShortDebugString();
    return stream_->Finish();
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<v1::AttentionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(ServerStreamTest, AnswersEveryItemByItsIdThenOk) {
  Start();
  std::map<uint64_t, v1::AttendRequest> requests;
  for (uint64_t id : {5, 0, 7}) {
    requests[id] = OneItemRequest(id);
    ASSERT_TRUE(stream_->Write(Frame(id, requests[id])));
  }
  stream_->WritesDone();
  std::map<uint64_t, std::string> outputs;
  v1::AttendStreamResponse reply;
  while (stream_->Read(&reply)) outputs[reply.request_id()] = reply.response().output().data();
  EXPECT_TRUE(stream_->Finish().ok());
  ASSERT_EQ(outputs.size(), 3u);
  for (const auto& [id, request] : requests) {
    grpc::ClientContext context;
    v1::AttendResponse alone;
    ASSERT_TRUE(stub_->Attend(&context, request, &alone).ok());
    EXPECT_EQ(outputs[id], alone.output().data()) << "item " << id;
  }
}

TEST_F(ServerStreamTest, AnEmptyStreamEndsOk) {
  Start();
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, ABadItemFailsAlone) {
  Start();
  v1::AttendRequest bad = OneItemRequest();
  bad.mutable_query()->mutable_data()->pop_back();
  stream_->Write(Frame(1, bad));
  ExpectError(1, grpc::INVALID_ARGUMENT, "query.data");
  stream_->Write(Frame(2));
  ExpectAnswer(2);
  EXPECT_TRUE(Close().ok());
  EXPECT_EQ(server_->Metric(R"(triad_requests_total{code="INVALID_ARGUMENT",method="AttendStream"})"), 1);
  EXPECT_EQ(server_->Metric(R"(triad_requests_total{code="OK",method="AttendStream"})"), 1);
}

TEST_F(ServerStreamTest, AnItemWithoutContentFailsAlone) {
  Start();
  v1::AttendStreamRequest frame;
  frame.set_request_id(3);
  stream_->Write(frame);
  ExpectError(3, grpc::INVALID_ARGUMENT, "request or a cancel");
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, AnUnknownFieldOfTheFrameFailsItsItem) {
  Start();
  v1::AttendStreamRequest frame = Frame(3);
  frame.GetReflection()->MutableUnknownFields(&frame)->AddVarint(99, 1);
  stream_->Write(frame);
  ExpectError(3, grpc::UNIMPLEMENTED, "99");
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, AnIdInFlightIsRefusedAndFreeAgainAfterwards) {
  Start();
  gate_->Close();
  stream_->Write(Frame(1));
  stream_->Write(Frame(1));
  ExpectError(1, grpc::INVALID_ARGUMENT, "unique");
  gate_->Open();
  ExpectAnswer(1);
  stream_->Write(Frame(1));
  ExpectAnswer(1);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, CancelEndsAQueuedItem) {
  Start();
  gate_->Close();
  stream_->Write(Frame(1));
  gate_->AwaitArrivals(1);
  stream_->Write(Frame(2));
  stream_->Write(CancelFrame(2));
  ExpectError(2, grpc::CANCELLED, "cancel");
  gate_->Open();
  ExpectAnswer(1);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, CancelOfAnIdThatIsNotInFlightDoesNothing) {
  Start();
  stream_->Write(CancelFrame(9));
  stream_->Write(Frame(1));
  ExpectAnswer(1);
  stream_->Write(CancelFrame(1));
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, StopsReadingAtTheBoundOfItems) {
  ServerOptions options = TestServerOptions();
  options.max_stream_items = 2;
  Start(options);
  gate_->Close();
  stream_->Write(Frame(1));
  stream_->Write(Frame(2));
  gate_->AwaitArrivals(1);
  // Read only after an answer has left: a duplicate id would otherwise be answered while the gate is closed.
  stream_->Write(Frame(1));
  gate_->Open();
  ExpectAnswer(1);
  std::multiset<uint64_t> ids = {Read().request_id(), Read().request_id()};
  EXPECT_EQ(ids, (std::multiset<uint64_t>{1, 2}));
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, AnItemEndsAtItsOwnTimeout) {
  Start();
  gate_->Close();
  stream_->Write(Frame(1));
  gate_->AwaitArrivals(1);
  v1::AttendStreamRequest hurried = Frame(2);
  hurried.mutable_timeout()->set_nanos(1'000'000);
  stream_->Write(hurried);
  ExpectError(2, grpc::DEADLINE_EXCEEDED, "deadline");
  gate_->Open();
  ExpectAnswer(1);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, ATimeoutMustBePositive) {
  Start();
  v1::AttendStreamRequest frame = Frame(4);
  frame.mutable_timeout();
  stream_->Write(frame);
  ExpectError(4, grpc::INVALID_ARGUMENT, "timeout");
  frame.mutable_timeout()->set_seconds(-1);
  stream_->Write(frame);
  ExpectError(4, grpc::INVALID_ARGUMENT, "timeout");
  frame.mutable_timeout()->set_seconds(std::numeric_limits<int64_t>::max());
  stream_->Write(frame);
  ExpectAnswer(4);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, LoadIsAnErrorWithARetryDelay) {
  ServerOptions options = TestServerOptions();
  options.max_in_flight_requests = 1;
  Start(options);
  gate_->Close();
  stream_->Write(Frame(1));
  gate_->AwaitArrivals(1);
  stream_->Write(Frame(2));
  const v1::AttendStreamResponse reply = Read();
  EXPECT_EQ(reply.error().code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_GT(reply.error().retry_delay().seconds() * 1'000'000'000 + reply.error().retry_delay().nanos(), 0);
  gate_->Open();
  ExpectAnswer(1);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, StreamsAreBounded) {
  ServerOptions options = TestServerOptions();
  options.max_streams = 1;
  Start(options);
  stream_->Write(Frame(1));
  ExpectAnswer(1);  // so the first stream is open
  grpc::ClientContext context;
  auto second = stub_->AttendStream(&context);
  v1::AttendStreamResponse reply;
  EXPECT_FALSE(second->Read(&reply));
  const grpc::Status status = second->Finish();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max_streams"));
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, ItemsEndWhenTheClientVanishes) {
  Start();
  gate_->Close();
  stream_->Write(Frame(1));
  gate_->AwaitArrivals(1);
  stream_->Write(Frame(2));
  while (server_->server().in_flight_requests() < 2) std::this_thread::yield();
  context_.TryCancel();
  // The queued one is dropped while the gate is closed; the running one ends with its work item.
  while (server_->server().in_flight_requests() > 1) std::this_thread::yield();
  gate_->Open();
  while (server_->server().in_flight_requests() > 0) std::this_thread::yield();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(ServerStreamTest, AFrameThatIsNoMessageEndsTheStreamAfterItsAnswers) {
  Start();
  RawCall call(server_->NewChannel(), kAttendStreamMethod);
  ASSERT_TRUE(call.Write(Frame(1).SerializeAsString()));
  ASSERT_TRUE(call.Write(std::string(20, '\xff')));
  v1::AttendStreamResponse reply;
  ASSERT_TRUE(reply.ParseFromString(call.Read().value_or("")));
  EXPECT_TRUE(reply.has_response());
  EXPECT_EQ(call.Read(), std::nullopt);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("frame"));
}

TEST_F(ServerStreamTest, AFrameThatIsNoMessageIsNeverTakenForAHalfClose) {
  Start();
  // Fields that parse, then garbage: what the parser leaves behind must look like no mark of the server's.
  v1::AttendStreamRequest frame;
  frame.set_request_id(std::numeric_limits<uint64_t>::max());
  const std::string unknown("\x9a\x06\x00", 3);  // field 99, empty
  const std::string field_zero("\x02\x00", 2);   // field 0, which no message has
  for (const std::string& head : {std::string(), frame.SerializeAsString(), unknown}) {
    for (const std::string& tail : {field_zero, std::string(20, '\xff')}) {
      RawCall call(server_->NewChannel(), kAttendStreamMethod);
      ASSERT_TRUE(call.Write(head + tail));
      EXPECT_EQ(call.Read(), std::nullopt);
      EXPECT_EQ(call.Finish().error_code(), grpc::INVALID_ARGUMENT) << head.size() << " bytes, then " << tail.size();
    }
  }
  EXPECT_TRUE(Close().ok());
}

TEST_F(ServerStreamTest, AnsweredWhileTheServerDrainsThenUnavailable) {
  Start();
  gate_->Close();
  stream_->Write(Frame(1));
  gate_->AwaitArrivals(1);
  server_->server().BeginDrain();
  stream_->Write(Frame(2));
  ExpectError(2, grpc::UNAVAILABLE, "draining");
  gate_->Open();
  ExpectAnswer(1);
  v1::AttendStreamResponse reply;
  EXPECT_FALSE(stream_->Read(&reply));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace triad
