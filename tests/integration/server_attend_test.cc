// Attend through a real channel: answers, and what is refused. Every refusal is followed by a good request.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServerAttendTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServerOptions options = TestServerOptions();
    options.max_message_bytes = 1 << 20;
    options.max_tokens_per_request = 4096;
    options.max_weights_bytes = 4096;
    options.max_reference_work = 1 << 20;
    server_ = new TestServer(options);
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  void TearDown() override { ExpectServesGoodRequest(); }

  grpc::Status Attend(const v1::AttendRequest& request) {
    grpc::ClientContext context;
    response_.Clear();
    return stub_->Attend(&context, request, &response_);
  }

  void ExpectServesGoodRequest() {
    const grpc::Status status = Attend(MakeRequest({}, /*seed=*/7));
    EXPECT_TRUE(status.ok()) << status.error_code() << ": " << status.error_message();
  }

  // `request` is answered with `code` and a message with all of `words`.
  void ExpectRefused(const v1::AttendRequest& request, grpc::StatusCode code, const std::vector<std::string>& words) {
    const grpc::Status status = Attend(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    for (const std::string& word : words) EXPECT_THAT(status.error_message(), HasSubstr(word));
  }

  static TestServer* server_;
  std::shared_ptr<grpc::Channel> channel_ = server_->NewChannel();
  std::unique_ptr<v1::AttentionService::Stub> stub_ = v1::AttentionService::NewStub(channel_);
  v1::AttendResponse response_;
};

TestServer* ServerAttendTest::server_ = nullptr;

TEST_F(ServerAttendTest, AnswersWithShapeTypeAndTimings) {
  v1::AttendRequest request = MakeRequest({.batch = 2, .q_len = 3, .kv_len = 5, .heads = 4, .kv_heads = 2}, /*seed=*/1);
  request.set_return_lse(true);
  request.set_return_weights(true);
  ASSERT_TRUE(Attend(request).ok());
  EXPECT_EQ(response_.output().dtype(), v1::FLOAT32);
  EXPECT_THAT(response_.output().shape(), ElementsAre(2, 3, 4, 8));
  EXPECT_EQ(response_.output().data().size(), 2u * 3 * 4 * 8 * 4);
  EXPECT_THAT(response_.lse().shape(), ElementsAre(2, 4, 3));
  EXPECT_THAT(response_.weights().shape(), ElementsAre(2, 4, 3, 5));
  EXPECT_GT(response_.timings().total_ns(), 0);
  EXPECT_GE(response_.timings().total_ns(), response_.timings().compute_ns());
}

TEST_F(ServerAttendTest, SetsOnlyTheOutputsAskedFor) {
  ASSERT_TRUE(Attend(MakeRequest({}, /*seed=*/1)).ok());
  EXPECT_FALSE(response_.has_lse());
  EXPECT_FALSE(response_.has_weights());
}

TEST_F(ServerAttendTest, AveragesValuesWhenAllKeysAreEqual) {
  v1::AttendRequest request = OneItemRequest();
  *request.mutable_key() = ZeroTensor({1, 3, 1, 8});
  const std::vector<float> value = Floats(request.value());
  ASSERT_TRUE(Attend(request).ok());
  const std::vector<float> output = Floats(response_.output());
  for (size_t dim = 0; dim < 8; ++dim) {
    EXPECT_NEAR(output[dim], (value[dim] + value[8 + dim] + value[16 + dim]) / 3, 1e-6) << "dim " << dim;
  }
}

TEST_F(ServerAttendTest, ReferenceAndAutoAgree) {
  v1::AttendRequest request =
      MakeRequest({.batch = 2, .q_len = 9, .kv_len = 17, .heads = 4, .kv_heads = 2}, /*seed=*/3);
  request.set_causal(true);
  request.set_alignment(v1::BOTTOM_RIGHT);
  ASSERT_TRUE(Attend(request).ok());
  const std::vector<float> fast = Floats(response_.output());
  request.set_kernel(v1::KERNEL_REFERENCE);
  ASSERT_TRUE(Attend(request).ok());
  EXPECT_THAT(fast, ::testing::Pointwise(::testing::FloatNear(1e-5f), Floats(response_.output())));
}

TEST_F(ServerAttendTest, AnswersEmptyProblems) {
  ASSERT_TRUE(Attend(MakeRequest({.q_len = 0}, 1)).ok());
  EXPECT_THAT(response_.output().shape(), ElementsAre(1, 0, 2, 8));
  ASSERT_TRUE(Attend(MakeRequest({.kv_len = 0}, 1)).ok());
  EXPECT_THAT(Floats(response_.output()), ::testing::Each(0.0f));
  ASSERT_TRUE(Attend(MakeRequest({.batch = 0}, 1)).ok());
}

TEST_F(ServerAttendTest, NamesWhatIsMissing) {
  ExpectRefused({}, grpc::INVALID_ARGUMENT, {"query", "unset"});
  v1::AttendRequest request = OneItemRequest();
  request.clear_value();
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"value", "unset"});
  request = OneItemRequest();
  request.mutable_key()->clear_dtype();
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"key.dtype", "UNSPECIFIED"});
}

TEST_F(ServerAttendTest, NamesBytesThatDoNotFitTheShape) {
  v1::AttendRequest request = OneItemRequest();
  request.mutable_key()->mutable_data()->pop_back();
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"key.data", "96 bytes", "95 bytes", "[1, 3, 1, 8]"});
  request.mutable_key()->mutable_data()->append(2, '\0');
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"key.data", "97 bytes"});
}

TEST_F(ServerAttendTest, RefusesHostileShapes) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, -1, 1, 8},
                                            {kHuge, kHuge, kHuge, kHuge},
                                            {0, kHuge, kHuge, kHuge},
                                            {std::numeric_limits<int64_t>::min(), 1, 1, 1},
                                            {1, 1, 8},
                                            {},
                                            {1, 0, 1, 0},
                                            {1, 0, 0, 8}}) {
    v1::AttendRequest request = OneItemRequest();
    for (v1::Tensor* tensor : {request.mutable_query(), request.mutable_key(), request.mutable_value()}) {
      tensor->mutable_shape()->Assign(shape.begin(), shape.end());
      tensor->clear_data();
    }
    request.set_alibi(true);
    request.set_alignment(v1::TOP_LEFT);
    ExpectRefused(request, grpc::INVALID_ARGUMENT, {"query"});
    ExpectServesGoodRequest();
  }
  v1::AttendRequest request = OneItemRequest();
  request.mutable_query()->mutable_shape()->Resize(100'000, 1);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"query.shape", "100000"});
}

// No bytes stand behind the other sizes of an empty tensor, and nothing is done as often as they say.
TEST_F(ServerAttendTest, EmptyTensorsMayHaveAnyOtherSizes) {
  v1::AttendRequest request = OneItemRequest();
  for (v1::Tensor* tensor : {request.mutable_query(), request.mutable_key(), request.mutable_value()}) {
    const int64_t shape[] = {1, 0, int64_t{1} << 40, 8};
    tensor->mutable_shape()->Assign(std::begin(shape), std::end(shape));
    tensor->clear_data();
  }
  request.set_alibi(true);
  const grpc::Status status = Attend(request);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response_.output().data().size(), 0u);
}

TEST_F(ServerAttendTest, NamesTheFlagOfALimit) {
  ExpectRefused(MakeRequest({.q_len = 4096, .heads = 1, .kv_heads = 1}, 1), grpc::INVALID_ARGUMENT,
                {"--max_tokens_per_request", "4096"});
  v1::AttendRequest weights = MakeRequest({.q_len = 64, .kv_len = 64}, 1);
  weights.set_return_weights(true);
  ExpectRefused(weights, grpc::INVALID_ARGUMENT, {"--max_weights_bytes", "4096"});
  v1::AttendRequest reference = MakeRequest({.q_len = 256, .kv_len = 256}, 1);
  reference.set_kernel(v1::KERNEL_REFERENCE);
  ExpectRefused(reference, grpc::INVALID_ARGUMENT, {"--max_reference_work", "KERNEL_AUTO"});
}

TEST_F(ServerAttendTest, RefusesARequestWhoseReplyWouldPassTheMessageLimit) {
  v1::AttendRequest request = MakeRequest({.q_len = 1024, .kv_len = 1, .heads = 8, .kv_heads = 1, .head_dim = 1}, 1);
  *request.mutable_value() = ZeroTensor({1, 1, 1, 1024});
  // 1 MiB, of which 256 bytes are for what stands around the tensors' data.
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"at most 1048320 bytes, to fit --max_message_bytes; was 33554432"});
}

TEST_F(ServerAttendTest, NamesUnknownFieldsAnywhere) {
  constexpr int kNewField = 4711;
  v1::AttendRequest request = OneItemRequest();
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(kNewField, 1);
  ExpectRefused(request, grpc::UNIMPLEMENTED, {"4711", "AttendRequest"});
  request = OneItemRequest();
  v1::Window& window = *request.mutable_window();
  window.GetReflection()->MutableUnknownFields(&window)->AddVarint(kNewField, 1);
  ExpectRefused(request, grpc::UNIMPLEMENTED, {"4711", "window"});
}

TEST_F(ServerAttendTest, NamesUnknownEnumValues) {
  v1::AttendRequest request = OneItemRequest();
  request.set_kernel(static_cast<v1::Kernel>(99));
  ExpectRefused(request, grpc::UNIMPLEMENTED, {"kernel", "99"});
  request = OneItemRequest();
  request.mutable_query()->set_dtype(static_cast<v1::DataType>(77));
  ExpectRefused(request, grpc::UNIMPLEMENTED, {"query.dtype", "77"});
}

TEST_F(ServerAttendTest, RefusesAMessagePastTheLimit) {
  EXPECT_EQ(CallRaw(channel_, kAttendMethod, std::string((1 << 20) + 1, '\0')).status.error_code(),
            grpc::RESOURCE_EXHAUSTED);
}

TEST_F(ServerAttendTest, RefusesBytesThatAreNoMessage) {
  std::string truncated = OneItemRequest().SerializeAsString();
  truncated.resize(truncated.size() - 5);
  for (const std::string& bytes : {truncated, std::string(100, '\xff'), std::string(500000, '\xff')}) {
    const grpc::Status status = CallRaw(channel_, kAttendMethod, bytes).status;
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                AllOf(HasSubstr("triad.v1.AttendRequest"), HasSubstr(absl::StrCat(bytes.size()))));
  }
}

// Most of them are callers who went away while it came: no fault of a request's.
TEST_F(ServerAttendTest, ACallWithoutAMessageIsRefusedAndNotCounted) {
  const auto counted = [] {
    return server_->Metric(R"(triad_requests_total{code="INVALID_ARGUMENT",method="Attend"})");
  };
  const double before = counted();
  RawCall none(channel_, kAttendMethod);
  none.WritesDone();
  const grpc::Status status = none.Finish();
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("none came whole"));
  EXPECT_EQ(counted(), before);
}

// What an item of a stream is answered with, which comes decoded by gRPC.
v1::AttendStreamResponse AttendInStream(v1::AttentionService::Stub& stub, const v1::AttendRequest& request) {
  grpc::ClientContext context;
  const auto stream = stub.AttendStream(&context);
  v1::AttendStreamRequest frame;
  *frame.mutable_request() = request;
  v1::AttendStreamResponse answer;
  stream->Write(frame);
  stream->WritesDone();
  stream->Read(&answer);
  EXPECT_TRUE(stream->Finish().ok());
  return answer;
}

// 300 keys of 4 heads, 2 query heads to each: a message of some 400 KiB.
v1::AttendRequest LargeRequest(int64_t q_len, v1::Layout layout) {
  const auto sizes = [&](int64_t tokens, int64_t heads, int64_t dim) {
    return layout == v1::HEADS_TOKENS ? std::vector<int64_t>{1, heads, tokens, dim}
                                      : std::vector<int64_t>{1, tokens, heads, dim};
  };
  v1::AttendRequest request;
  *request.mutable_query() = NormalTensor(sizes(q_len, 8, 8), /*seed=*/1);
  *request.mutable_key() = NormalTensor(sizes(300, 4, 8), /*seed=*/2);
  *request.mutable_value() = NormalTensor(sizes(300, 4, 72), /*seed=*/3);
  request.mutable_key_lengths()->add_values(297);
  request.set_layout(layout);
  request.set_return_lse(true);
  return request;
}

// A large message's keys and values are read where the transport put them; what that changes is time alone.
TEST_F(ServerAttendTest, AnswersALargeRequestAsAStreamDoes) {
  for (const int64_t q_len : {1, 2, 5}) {  // few rows to a kv head, and too many
    for (const v1::Layout layout : {v1::TOKENS_HEADS, v1::HEADS_TOKENS}) {
      for (const v1::Kernel kernel : {v1::KERNEL_AUTO, v1::KERNEL_REFERENCE}) {
        v1::AttendRequest request = LargeRequest(q_len, layout);
        request.set_kernel(kernel);
        ASSERT_TRUE(Attend(request).ok());
        v1::AttendResponse streamed = AttendInStream(*stub_, request).response();
        streamed.clear_timings();
        response_.clear_timings();
        EXPECT_EQ(response_.SerializeAsString(), streamed.SerializeAsString())
            << q_len << " queries, " << v1::Layout_Name(layout) << ", " << v1::Kernel_Name(kernel);
      }
    }
  }
}

// And what may not hold gRPC's memory meanwhile is copied.
TEST_F(ServerAttendTest, AnswersALargeRequestWithoutRoomToHoldIt) {
  ServerOptions options = TestServerOptions();
  options.grpc_memory_bytes = options.max_message_bytes;
  TestServer tight(options);
  const v1::AttendRequest request = LargeRequest(/*q_len=*/1, v1::TOKENS_HEADS);
  ASSERT_TRUE(Attend(request).ok());
  grpc::ClientContext context;
  v1::AttendResponse copied;
  ASSERT_TRUE(tight.NewStub()->Attend(&context, request, &copied).ok());
  EXPECT_EQ(copied.output().data(), response_.output().data());
}

// One of many calls at once, on a connection of its own.
struct AttendAtOnce {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AttendResponse>> reader;
  v1::AttendResponse response;
  grpc::Status status;
};

// gRPC makes room by ending calls and connections, whenever memory comes back, on whatever thread it does.
TEST_F(ServerAttendTest, LivesThroughMoreRequestsThanGrpcHasMemoryFor) {
  ServerOptions options = TestServerOptions();
  options.max_message_bytes = int64_t{8} << 20;
  v1::AttendRequest request;  // of 4 MiB
  *request.mutable_query() = ZeroTensor({1, 1, 8, 64});
  *request.mutable_key() = ZeroTensor({1, 1024, 8, 64});
  *request.mutable_value() = ZeroTensor({1, 1024, 8, 64});
  for (const int64_t messages : {1, 4}) {  // without room to hold any, and with
    options.grpc_memory_bytes = messages * options.max_message_bytes;
    TestServer tight(options);
    grpc::CompletionQueue queue;
    std::vector<AttendAtOnce> calls(100);
    for (AttendAtOnce& call : calls) {
      call.channel = tight.NewChannel();
      call.context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
      call.reader = v1::AttentionService::NewStub(call.channel)->AsyncAttend(&call.context, request, &queue);
      call.reader->Finish(&call.response, &call.status, &call);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      void* call = nullptr;
      bool is_ok = false;
      ASSERT_TRUE(queue.Next(&call, &is_ok));
      static_cast<AttendAtOnce*>(call)->channel.reset();
    }
    bool is_answered = false;  // not at once: gRPC may still be ending connections
    for (int tries = 0; tries < 1000 && !is_answered; ++tries) is_answered = CallSmallAttend(tight.NewChannel()).ok();
    EXPECT_TRUE(is_answered);
  }
}

}  // namespace
}  // namespace triad
