// The rules of AttendStream and ForwardStream, one by one.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/layer_source.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

// The suite runs once for each. What all have: the messages, the calls, and the tensor of a request that a test spoils.
struct AttendItems {
  using Frame = v1::AttendStreamRequest;
  using Reply = v1::AttendStreamResponse;
  using Response = v1::AttendResponse;
  static constexpr const char* kName = "AttendStream";
  static constexpr const char* kMethod = kAttendStreamMethod;
  static constexpr const char* kInput = "query";

  static v1::AttendRequest Request(uint64_t seed) { return OneItemRequest(seed); }
  static v1::Tensor& Input(v1::AttendRequest& request) { return *request.mutable_query(); }
  static auto Open(v1::AttentionService::Stub& stub, grpc::ClientContext* context) {
    return stub.AttendStream(context);
  }
  static grpc::Status Alone(v1::AttentionService::Stub& stub, const v1::AttendRequest& request, Response* response) {
    grpc::ClientContext context;
    return stub.Attend(&context, request, response);
  }
};

struct ForwardItems {
  using Frame = v1::ForwardStreamRequest;
  using Reply = v1::ForwardStreamResponse;
  using Response = v1::ForwardResponse;
  static constexpr const char* kName = "ForwardStream";
  static constexpr const char* kMethod = kForwardStreamMethod;
  static constexpr const char* kInput = "input";

  static v1::ForwardRequest Request(uint64_t seed) {
    return MakeForwardRequest(kDemoLayerName, seed, {.tokens = 1, .dim = 512});
  }
  static v1::Tensor& Input(v1::ForwardRequest& request) { return *request.mutable_input(); }
  static auto Open(v1::AttentionService::Stub& stub, grpc::ClientContext* context) {
    return stub.ForwardStream(context);
  }
  static grpc::Status Alone(v1::AttentionService::Stub& stub, const v1::ForwardRequest& request, Response* response) {
    grpc::ClientContext context;
    return stub.Forward(&context, request, response);
  }
};

template <class Items>
class ServerStreamTest : public ::testing::Test {
 protected:
  using Frame = typename Items::Frame;
  using Reply = typename Items::Reply;
  using Request = std::decay_t<decltype(std::declval<Frame>().request())>;

  void Start(ServerOptions options = TestServerOptions()) {
    options.threads = 1;
    options.max_inline_flop = 0;
    options.demo_layer = true;
    server_ = std::make_unique<TestServer>(options, MakeGateKernel(gate_));
    stub_ = server_->NewStub();
    stream_ = Items::Open(*stub_, &context_);
  }
  void TearDown() override {
    gate_->Open();
    stream_.reset();  // before its context and its server
  }

  static Frame Item(uint64_t id, const Request& request = Items::Request(/*seed=*/1)) {
    Frame frame;
    frame.set_request_id(id);
    *frame.mutable_request() = request;
    return frame;
  }
  static Frame CancelOf(uint64_t id) {
    Frame frame;
    frame.set_request_id(id);
    frame.mutable_cancel();
    return frame;
  }

  Reply Read() {
    Reply reply;
    EXPECT_TRUE(stream_->Read(&reply)) << "the stream ended: " << stream_->Finish().error_message();
    return reply;
  }
  // The next reply is an error of item `id`.
  void ExpectError(uint64_t id, grpc::StatusCode code, const std::string& words) {
    const Reply reply = Read();
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_EQ(reply.error().code(), code) << reply.ShortDebugString();
    EXPECT_THAT(reply.error().message(), HasSubstr(words));
  }
  void ExpectAnswer(uint64_t id) {
    const Reply reply = Read();
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_TRUE(reply.has_response()) << reply.ShortDebugString();
  }
  // Ends the stream; every reply has been read.
  grpc::Status Close() {
    stream_->WritesDone();
    Reply reply;
    EXPECT_FALSE(stream_->Read(&reply)) << "a reply too many: " << reply.ShortDebugString();
    return stream_->Finish();
  }
  double Requests(const char* code) const {
    return server_->Metric(absl::StrCat("triad_requests_total{code=\"", code, "\",method=\"", Items::kName, "\"}"));
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<v1::AttentionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Frame, Reply>> stream_;
};

// In the tests' names, instead of numbers.
struct ItemsName {
  template <class Items>
  static std::string GetName(int /*index*/) {
    return Items::kName;
  }
};
using EveryItems = ::testing::Types<AttendItems, ForwardItems>;
TYPED_TEST_SUITE(ServerStreamTest, EveryItems, ItemsName);

TYPED_TEST(ServerStreamTest, AnswersEveryItemByItsIdThenOk) {
  this->Start();
  std::map<uint64_t, typename TestFixture::Request> requests;
  for (uint64_t id : {5, 0, 7}) {
    requests[id] = TypeParam::Request(id);
    ASSERT_TRUE(this->stream_->Write(this->Item(id, requests[id])));
  }
  this->stream_->WritesDone();
  std::map<uint64_t, std::string> outputs;
  typename TypeParam::Reply reply;
  while (this->stream_->Read(&reply)) outputs[reply.request_id()] = reply.response().output().data();
  EXPECT_TRUE(this->stream_->Finish().ok());
  ASSERT_EQ(outputs.size(), 3u);
  for (const auto& [id, request] : requests) {
    typename TypeParam::Response alone;
    ASSERT_TRUE(TypeParam::Alone(*this->stub_, request, &alone).ok());
    EXPECT_EQ(outputs[id], alone.output().data()) << "item " << id;
  }
}

TYPED_TEST(ServerStreamTest, AnEmptyStreamEndsOk) {
  this->Start();
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, ABadItemFailsAlone) {
  this->Start();
  typename TestFixture::Request bad = TypeParam::Request(/*seed=*/1);
  TypeParam::Input(bad).mutable_data()->pop_back();
  this->stream_->Write(this->Item(1, bad));
  this->ExpectError(1, grpc::INVALID_ARGUMENT, absl::StrCat(TypeParam::kInput, ".data"));
  this->stream_->Write(this->Item(2));
  this->ExpectAnswer(2);
  EXPECT_TRUE(this->Close().ok());
  EXPECT_EQ(this->Requests("INVALID_ARGUMENT"), 1);
  EXPECT_EQ(this->Requests("OK"), 1);
}

TYPED_TEST(ServerStreamTest, AnItemWithoutContentFailsAlone) {
  this->Start();
  typename TypeParam::Frame frame;
  frame.set_request_id(3);
  this->stream_->Write(frame);
  this->ExpectError(3, grpc::INVALID_ARGUMENT, "request or a cancel");
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, AnUnknownFieldOfTheFrameFailsItsItem) {
  this->Start();
  typename TypeParam::Frame frame = this->Item(3);
  frame.GetReflection()->MutableUnknownFields(&frame)->AddVarint(99, 1);
  this->stream_->Write(frame);
  this->ExpectError(3, grpc::UNIMPLEMENTED, "99");
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, AnIdInFlightIsRefusedAndFreeAgainAfterwards) {
  this->Start();
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->stream_->Write(this->Item(1));
  this->ExpectError(1, grpc::INVALID_ARGUMENT, "unique");
  this->gate_->Open();
  this->ExpectAnswer(1);
  this->stream_->Write(this->Item(1));
  this->ExpectAnswer(1);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, CancelEndsAQueuedItem) {
  this->Start();
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->gate_->AwaitArrivals(1);
  this->stream_->Write(this->Item(2));
  this->stream_->Write(this->CancelOf(2));
  this->ExpectError(2, grpc::CANCELLED, "cancel");
  this->gate_->Open();
  this->ExpectAnswer(1);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, CancelOfAnIdThatIsNotInFlightDoesNothing) {
  this->Start();
  this->stream_->Write(this->CancelOf(9));
  this->stream_->Write(this->Item(1));
  this->ExpectAnswer(1);
  this->stream_->Write(this->CancelOf(1));
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, StopsReadingAtTheBoundOfItems) {
  ServerOptions options = TestServerOptions();
  options.max_stream_items = 2;
  this->Start(options);
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->stream_->Write(this->Item(2));
  this->gate_->AwaitArrivals(1);
  // Read only after an answer has left: a bad item would otherwise be refused while the gate is closed.
  this->stream_->Write(this->Item(3, {}));
  this->gate_->Open();
  const uint64_t first = this->Read().request_id();
  EXPECT_NE(first, 3u);
  EXPECT_THAT((std::set<uint64_t>{first, this->Read().request_id(), this->Read().request_id()}),
              ::testing::ElementsAre(1, 2, 3));
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, AnItemEndsAtItsOwnTimeout) {
  this->Start();
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->gate_->AwaitArrivals(1);
  typename TypeParam::Frame hurried = this->Item(2);
  hurried.mutable_timeout()->set_nanos(100'000'000);  // far more than it takes, or it would not be let in
  this->stream_->Write(hurried);
  this->ExpectError(2, grpc::DEADLINE_EXCEEDED, "deadline");
  this->gate_->Open();
  this->ExpectAnswer(1);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, ATimeoutMustBePositive) {
  this->Start();
  typename TypeParam::Frame frame = this->Item(4);
  frame.mutable_timeout();
  this->stream_->Write(frame);
  this->ExpectError(4, grpc::INVALID_ARGUMENT, "timeout");
  frame.mutable_timeout()->set_seconds(-1);
  this->stream_->Write(frame);
  this->ExpectError(4, grpc::INVALID_ARGUMENT, "timeout");
  frame.mutable_timeout()->set_seconds(std::numeric_limits<int64_t>::max());
  this->stream_->Write(frame);
  this->ExpectAnswer(4);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, LoadIsAnErrorWithARetryDelay) {
  ServerOptions options = TestServerOptions();
  options.max_in_flight_requests = 1;
  this->Start(options);
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->gate_->AwaitArrivals(1);
  this->stream_->Write(this->Item(2));
  const typename TypeParam::Reply reply = this->Read();
  EXPECT_EQ(reply.error().code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_GT(reply.error().retry_delay().seconds() * 1'000'000'000 + reply.error().retry_delay().nanos(), 0);
  this->gate_->Open();
  this->ExpectAnswer(1);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, StreamsAreBounded) {
  ServerOptions options = TestServerOptions();
  options.max_streams = 1;
  this->Start(options);
  this->stream_->Write(this->Item(1));
  this->ExpectAnswer(1);  // so the first stream is open
  grpc::ClientContext context;
  auto second = TypeParam::Open(*this->stub_, &context);
  typename TypeParam::Reply reply;
  EXPECT_FALSE(second->Read(&reply));
  const grpc::Status status = second->Finish();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max_streams"));
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, ItemsEndWhenTheClientVanishes) {
  this->Start();
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->gate_->AwaitArrivals(1);
  this->stream_->Write(this->Item(2));
  while (this->server_->server().in_flight_requests() < 2) std::this_thread::yield();
  this->context_.TryCancel();
  // The queued one is dropped while the gate is closed; the running one ends with its work item.
  while (this->server_->server().in_flight_requests() > 1) std::this_thread::yield();
  this->gate_->Open();
  while (this->server_->server().in_flight_requests() > 0) std::this_thread::yield();
  EXPECT_EQ(this->stream_->Finish().error_code(), grpc::CANCELLED);
}

TYPED_TEST(ServerStreamTest, AFrameThatIsNoMessageEndsTheStreamAfterItsAnswers) {
  this->Start();
  RawCall call(this->server_->NewChannel(), TypeParam::kMethod);
  ASSERT_TRUE(call.Write(this->Item(1).SerializeAsString()));
  ASSERT_TRUE(call.Write(std::string(20, '\xff')));
  typename TypeParam::Reply reply;
  ASSERT_TRUE(reply.ParseFromString(call.Read().value_or("")));
  EXPECT_TRUE(reply.has_response());
  EXPECT_EQ(call.Read(), std::nullopt);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("frame"));
}

TYPED_TEST(ServerStreamTest, AFrameThatIsNoMessageIsNeverTakenForAHalfClose) {
  this->Start();
  // Fields that parse, then garbage: what the parser leaves behind must look like no mark of the server's.
  typename TypeParam::Frame frame;
  frame.set_request_id(std::numeric_limits<uint64_t>::max());
  const std::string unknown("\x9a\x06\x00", 3);  // field 99, empty
  const std::string field_zero("\x02\x00", 2);   // field 0, which no message has
  for (const std::string& head : {std::string(), frame.SerializeAsString(), unknown}) {
    for (const std::string& tail : {field_zero, std::string(20, '\xff')}) {
      RawCall call(this->server_->NewChannel(), TypeParam::kMethod);
      ASSERT_TRUE(call.Write(head + tail));
      EXPECT_EQ(call.Read(), std::nullopt);
      EXPECT_EQ(call.Finish().error_code(), grpc::INVALID_ARGUMENT) << head.size() << " bytes, then " << tail.size();
    }
  }
  EXPECT_TRUE(this->Close().ok());
}

TYPED_TEST(ServerStreamTest, AnsweredWhileTheServerDrainsThenUnavailable) {
  this->Start();
  this->gate_->Close();
  this->stream_->Write(this->Item(1));
  this->gate_->AwaitArrivals(1);
  this->server_->server().BeginDrain();
  this->stream_->Write(this->Item(2));
  this->ExpectError(2, grpc::UNAVAILABLE, "draining");
  this->gate_->Open();
  this->ExpectAnswer(1);
  typename TypeParam::Reply reply;
  EXPECT_FALSE(this->stream_->Read(&reply));
  EXPECT_EQ(this->stream_->Finish().error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace triad
