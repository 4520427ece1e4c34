// Forward through a real channel: answers, and what is refused. Every refusal is followed by a good request.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/layer/layer_tensors.h"
#include "server/layer_source.h"
#include "tests/support/layer_reference.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server with the layers "small" (versions 1 and 2) and "demo".
class ServerForwardTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryFolder;
    WriteSmallLayer(directory_->path(), "small", 1, 1);
    WriteSmallLayer(directory_->path(), "small", 2, 2);
    ServerOptions options = TestServerOptions();
    options.layer_dir = directory_->path().string();
    options.layers = {"small@1", "small@2"};
    options.demo_layer = true;
    options.max_tokens_per_request = 4096;
    server_ = new TestServer(options);
  }
  static void TearDownTestSuite() {
    delete std::exchange(server_, nullptr);
    delete std::exchange(directory_, nullptr);
  }
  void TearDown() override { ExpectServesGoodRequest(); }

  grpc::Status Forward(const v1::ForwardRequest& request) {
    grpc::ClientContext context;
    response_.Clear();
    return stub_->Forward(&context, request, &response_);
  }
  void ExpectServesGoodRequest() {
    const grpc::Status status = Forward(MakeForwardRequest("small", 7));
    EXPECT_TRUE(status.ok()) << status.error_code() << ": " << status.error_message();
  }
  void ExpectRefused(const v1::ForwardRequest& request, grpc::StatusCode code, const std::vector<std::string>& words) {
    const grpc::Status status = Forward(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    for (const std::string& word : words) EXPECT_THAT(status.error_message(), HasSubstr(word));
  }
  // Rows [begin, begin + count) of a tensor whose rows have kSmallDim floats.
  static std::string Rows(const v1::Tensor& tensor, size_t begin, size_t count) {
    return tensor.data().substr(begin * kSmallDim * 4, count * kSmallDim * 4);
  }

  static TemporaryFolder* directory_;
  static TestServer* server_;
  std::shared_ptr<grpc::Channel> channel_ = server_->NewChannel();
  std::unique_ptr<v1::AttentionService::Stub> stub_ = v1::AttentionService::NewStub(channel_);
  v1::ForwardResponse response_;
};

TemporaryFolder* ServerForwardTest::directory_ = nullptr;
TestServer* ServerForwardTest::server_ = nullptr;

TEST_F(ServerForwardTest, AnswersWithShapeVersionAndTimings) {
  v1::ForwardRequest request = MakeForwardRequest("demo", 1, {.batch = 2, .tokens = 7, .dim = 512});
  request.set_return_lse(true);
  request.set_return_weights(true);
  ASSERT_TRUE(Forward(request).ok());
  EXPECT_THAT(response_.output().shape(), ElementsAre(2, 7, 512));
  EXPECT_EQ(response_.output().dtype(), v1::FLOAT32);
  EXPECT_THAT(response_.lse().shape(), ElementsAre(2, 8, 7));
  EXPECT_THAT(response_.weights().shape(), ElementsAre(2, 8, 7, 7));
  EXPECT_EQ(response_.version(), 1);
  EXPECT_GE(response_.timings().total_ns(), response_.timings().compute_ns());
  EXPECT_GT(response_.timings().compute_ns(), 0);
  EXPECT_EQ(response_.timings().batch_requests(), 1);
  EXPECT_EQ(response_.timings().batch_tokens(), 14);
}

TEST_F(ServerForwardTest, TheDemoLayerAgreesWithTheReference) {
  v1::ForwardRequest request = MakeForwardRequest("demo", 3, {.tokens = 20, .dim = 512});
  request.set_return_lse(true);
  ASSERT_TRUE(Forward(request).ok());
  const LayerSpec spec = DemoLayerSpec();
  const LayerTensors tensors = *MakeSeededTensors(spec, kDemoLayerSeed);
  const LayerAnswer expected = ReferenceForward(spec, tensors, {.input = Floats(request.input())});
  const std::vector<float> output = Floats(response_.output());
  ASSERT_EQ(output.size(), expected.output.size());
  double error = 0;
  double energy = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    error += std::pow(output[i] - expected.output[i], 2);
    energy += std::pow(expected.output[i], 2);
  }
  EXPECT_LE(error, 1e-11 * energy) << "README.md, Numbers";
  const std::vector<float> lse = Floats(response_.lse());
  ASSERT_EQ(lse.size(), expected.lse.size());
  for (size_t i = 0; i < lse.size(); ++i) EXPECT_NEAR(lse[i], expected.lse[i], 1e-5) << "row " << i;
}

TEST_F(ServerForwardTest, SetsOnlyTheOutputsAskedFor) {
  ASSERT_TRUE(Forward(MakeForwardRequest("small", 1)).ok());
  EXPECT_FALSE(response_.has_lse());
  EXPECT_FALSE(response_.has_weights());
}

TEST_F(ServerForwardTest, WeightsOfARowSumToOne) {
  v1::ForwardRequest request = MakeForwardRequest("small", 1, {.tokens = 5});
  request.set_return_weights(true);
  ASSERT_TRUE(Forward(request).ok());
  const std::vector<float> weights = Floats(response_.weights());
  ASSERT_EQ(weights.size(), 2u * 5 * 5);
  for (size_t row = 0; row < 10; ++row) {
    float sum = 0;
    for (size_t key = 0; key < 5; ++key) sum += weights[row * 5 + key];
    EXPECT_NEAR(sum, 1, 1e-5) << "row " << row;
  }
}

TEST_F(ServerForwardTest, AVersionIsTheHighestUnlessNamed) {
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  ASSERT_TRUE(Forward(request).ok());
  EXPECT_EQ(response_.version(), 2);
  const std::string second = response_.output().data();
  request.set_version(1);
  ASSERT_TRUE(Forward(request).ok());
  EXPECT_EQ(response_.version(), 1);
  EXPECT_NE(response_.output().data(), second);
}

TEST_F(ServerForwardTest, PackedEqualsPaddedAndPaddingIsNotRead) {
  v1::ForwardRequest padded = MakeForwardRequest("small", 1, {.batch = 2, .tokens = 4});
  padded.mutable_lengths()->add_values(4);
  padded.mutable_lengths()->add_values(1);
  padded.set_return_lse(true);
  v1::ForwardRequest packed = padded;
  packed.set_layout(v1::PACKED);
  packed.mutable_input()->mutable_shape()->Clear();
  for (int64_t dim : {int64_t{5}, kSmallDim}) packed.mutable_input()->add_shape(dim);
  packed.mutable_input()->set_data(Rows(padded.input(), 0, 5));
  ASSERT_TRUE(Forward(packed).ok());
  EXPECT_THAT(response_.output().shape(), ElementsAre(5, kSmallDim));
  EXPECT_THAT(response_.lse().shape(), ElementsAre(2, 5));
  const std::string output = response_.output().data();

  ASSERT_TRUE(Forward(padded).ok());
  EXPECT_EQ(Rows(response_.output(), 0, 5), output);
  const std::vector<float> lse = Floats(response_.lse());
  for (size_t head = 0; head < 2; ++head) {
    for (size_t row = 1; row < 4; ++row) {
      EXPECT_EQ(lse[(2 + head) * 4 + row], -std::numeric_limits<float>::infinity());
    }
  }

  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::string& data = *padded.mutable_input()->mutable_data();
  for (size_t offset = 5 * kSmallDim * 4; offset < data.size(); offset += 4) std::memcpy(&data[offset], &nan, 4);
  ASSERT_TRUE(Forward(padded).ok());
  EXPECT_EQ(Rows(response_.output(), 0, 5), output);
}

TEST_F(ServerForwardTest, AnswersEmptyRequests) {
  ASSERT_TRUE(Forward(MakeForwardRequest("small", 1, {.batch = 0})).ok());
  EXPECT_THAT(response_.output().shape(), ElementsAre(0, 3, kSmallDim));
  ASSERT_TRUE(Forward(MakeForwardRequest("small", 1, {.tokens = 0})).ok());
  EXPECT_THAT(response_.output().shape(), ElementsAre(1, 0, kSmallDim));
}

TEST_F(ServerForwardTest, NamesWhatIsWrong) {
  ExpectRefused({}, grpc::INVALID_ARGUMENT, {"layer", "unset"});
  ExpectRefused(MakeForwardRequest("../small", 1), grpc::INVALID_ARGUMENT, {"layer", "../small"});
  ExpectRefused(MakeForwardRequest("large", 1), grpc::NOT_FOUND, {"large", "small@2", "demo@1"});
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  request.set_version(9);
  ExpectRefused(request, grpc::NOT_FOUND, {"version 9"});
  request = MakeForwardRequest("small", 1);
  request.clear_input();
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"input", "unset"});
  ExpectRefused(MakeForwardRequest("small", 1, {.dim = kSmallDim + 1}), grpc::INVALID_ARGUMENT, {"input", "17"});
  request = MakeForwardRequest("small", 1);
  request.set_layout(v1::HEADS_TOKENS);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"layout"});
  request = MakeForwardRequest("small", 1);
  request.mutable_lengths()->add_values(4);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"lengths", "4"});
  ExpectRefused(MakeForwardRequest("small", 1, {.tokens = 3000}), grpc::INVALID_ARGUMENT, {"--max_tokens_per_request"});
}

TEST_F(ServerForwardTest, SelfAttentionRefusesAContext) {
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  *request.mutable_context() = NormalTensor({1, 2, kSmallDim}, 2);
  ExpectRefused(request, grpc::INVALID_ARGUMENT, {"context"});
}

TEST_F(ServerForwardTest, UnknownFieldsAreRefusedByName) {
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  request.mutable_input()->GetReflection()->MutableUnknownFields(request.mutable_input())->AddVarint(77, 1);
  ExpectRefused(request, grpc::UNIMPLEMENTED, {"input", "77"});
}

TEST_F(ServerForwardTest, BytesThatAreNoMessageAreRefused) {
  EXPECT_FALSE(CallRaw(channel_, kForwardMethod, std::string(32, '\xff')).status.ok());
}

TEST_F(ServerForwardTest, ConcurrentRequestsHaveTheBytesOfLoneOnes) {
  constexpr size_t kRequests = 24;
  std::vector<v1::ForwardRequest> requests;
  std::vector<std::string> alone;
  for (size_t i = 0; i < kRequests; ++i) {
    const auto tokens = static_cast<int64_t>(1 + i * 7 % 40);
    requests.push_back(MakeForwardRequest("demo", i, {.tokens = tokens, .dim = 512}));
    ASSERT_TRUE(Forward(requests.back()).ok());
    alone.push_back(response_.output().data());
  }
  std::vector<v1::ForwardResponse> together(kRequests);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kRequests; ++i) {
    clients.emplace_back([&, i] {
      grpc::ClientContext context;
      EXPECT_TRUE(stub_->Forward(&context, requests[i], &together[i]).ok());
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < kRequests; ++i) EXPECT_EQ(together[i].output().data(), alone[i]) << "request " << i;
}

// One compute thread, held up by an Attend while Forwards arrive.
TEST(ServerForwardBatchTest, RequestsThatWaitTogetherShareTheirProjections) {
  const TemporaryFolder directory;
  WriteSmallLayer(directory.path(), "small", 1, 1);
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = TestServerOptions();
  options.layer_dir = directory.path().string();
  options.threads = 1;
  options.max_inline_flop = 0;
  TestServer server(options, MakeGateKernel(gate));
  gate->Close();
  std::vector<std::thread> clients;
  clients.emplace_back([&] {
    grpc::ClientContext context;
    v1::AttendResponse response;
    EXPECT_TRUE(server.NewStub()->Attend(&context, OneItemRequest(), &response).ok());
  });
  gate->AwaitArrivals(1);
  constexpr int64_t kForwards = 5;
  std::vector<v1::ForwardResponse> responses(kForwards);
  for (size_t i = 0; i < kForwards; ++i) {
    clients.emplace_back([&, i] {
      grpc::ClientContext context;
      const v1::ForwardRequest request = MakeForwardRequest("small", i, {.tokens = static_cast<int64_t>(i) + 1});
      EXPECT_TRUE(server.NewStub()->Forward(&context, request, &responses[i]).ok());
    });
  }
  while (server.Metric("triad_listed_requests") < 1 + kForwards) std::this_thread::yield();
  gate->Open();
  for (std::thread& client : clients) client.join();
  for (const v1::ForwardResponse& response : responses) {
    EXPECT_EQ(response.timings().batch_requests(), kForwards);
    EXPECT_EQ(response.timings().batch_tokens(), 1 + 2 + 3 + 4 + 5);
  }
  EXPECT_EQ(server.Metric("triad_forward_batch_requests_count"), 1);
  EXPECT_EQ(server.Metric("triad_forward_batch_requests_sum"), kForwards);
  EXPECT_EQ(server.Metric("triad_forward_batch_tokens_sum"), 15);
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="OK",method="Forward"})"), kForwards);
}

TEST_F(ServerForwardTest, AStreamAnswersEveryItemAsForwardWould) {
  grpc::ClientContext context;
  auto stream = stub_->ForwardStream(&context);
  std::map<uint64_t, v1::ForwardRequest> requests;
  for (uint64_t id : {4, 0, 9}) {
    v1::ForwardStreamRequest frame;
    frame.set_request_id(id);
    *frame.mutable_request() = requests[id] = MakeForwardRequest("small", id, {.tokens = static_cast<int64_t>(id)});
    ASSERT_TRUE(stream->Write(frame));
  }
  v1::ForwardStreamRequest bad;
  bad.set_request_id(5);
  *bad.mutable_request() = MakeForwardRequest("large", 1);
  ASSERT_TRUE(stream->Write(bad));
  stream->WritesDone();
  std::map<uint64_t, v1::ForwardStreamResponse> replies;
  v1::ForwardStreamResponse reply;
  while (stream->Read(&reply)) replies[reply.request_id()] = reply;
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(replies[5].error().code(), grpc::NOT_FOUND);
  for (const auto& [id, request] : requests) {
    ASSERT_TRUE(Forward(request).ok());
    EXPECT_EQ(replies[id].response().output().data(), response_.output().data()) << "item " << id;
    EXPECT_EQ(replies[id].response().version(), 2);
  }
}

}  // namespace
}  // namespace triad
