#include "client/tools/bench/check_answers.h"

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

const PlannedRequest kHundred = {.tokens = 100, .kv_len = 100, .seed = 3};
const client::Shape kHundredRows = {1, 100, 8, 64};

// An output of `kHundredRows`, zero but for its last element.
client::Tensor Output(float last, client::Shape shape = kHundredRows) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<float> values(static_cast<size_t>(count));
  values.back() = last;
  return client::Tensor(client::DataType::kFloat32, std::move(shape),
                        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

// A server whose every answer is zeros.
class CheckAnswersTest : public ::testing::Test {
 protected:
  CheckAnswersTest() { server_->info.limits.max_reference_work = int64_t{1} << 30; }

  CheckReport Check(const Workload& workload, client::Tensor output) {
    std::vector<SampledAnswer> answers;
    answers.push_back({.request = kHundred, .output = std::move(output), .layer_version = 7});
    return CheckAnswers(answers, *RequestBuilder::Create(workload, kHundred), {client::Client(server_)});
  }

  const std::shared_ptr<FakeConnection> server_ = std::make_shared<FakeConnection>();
};

TEST_F(CheckAnswersTest, AnAnswerThatAgreesWithTheReferenceIsRight) {
  const CheckReport report = Check({}, Output(0));
  EXPECT_EQ(report.right, 1);
  EXPECT_EQ(report.wrong + report.unchecked, 0);
  EXPECT_EQ(server_->requests.back().kernel, client::Kernel::kReference);
  EXPECT_EQ(server_->requests.back().query.shape, (client::Shape{1, 64, 8, 64})) << "the last 64 rows";
}

TEST_F(CheckAnswersTest, OneThatDiffersIsWrongAndNamed) {
  const CheckReport report = Check({}, Output(0.5));
  EXPECT_EQ(report.wrong, 1);
  EXPECT_THAT(report.first_wrong, HasSubstr("seed 3: differs from kernel REFERENCE by"));
  EXPECT_GT(report.largest_excess, 1);
}

TEST_F(CheckAnswersTest, SoIsOneOfAnotherShape) { EXPECT_EQ(Check({}, Output(0, {1, 100, 8, 32})).wrong, 1); }

TEST_F(CheckAnswersTest, TheReferencesWorkIsBoundedByTheServersLimit) {
  server_->info.limits.max_reference_work = 3 * 100 * 8 * 128;
  EXPECT_EQ(Check({}, Output(0)).right, 1);
  EXPECT_EQ(server_->requests.back().query.shape[1], 3);
  server_->info.limits.max_reference_work = 100;
  const CheckReport report = Check({}, Output(0));
  EXPECT_EQ(report.unchecked, 1);
  EXPECT_THAT(report.why_unchecked, HasSubstr("--max_reference_work"));
}

TEST_F(CheckAnswersTest, AServerThatDoesNotAnswerLeavesItUnchecked) {
  server_->failure = absl::UnavailableError("gone");
  EXPECT_EQ(Check({}, Output(0)).unchecked, 1);
}

// Answers one reference with zeros. The second call is stopped while it is under way.
class StoppingConnection final : public client::Connection {
 public:
  absl::StatusOr<client::ServerInfo> GetServerInfo(const client::CallOptions&) override { return info; }
  absl::StatusOr<client::AttendResponse> Attend(const client::AttendRequest& request,
                                                const client::CallOptions& options) override {
    if (++calls == 2) stop.request_stop();
    if (options.cancel.stop_requested()) return absl::CancelledError("cancelled by the caller");
    return client::AttendResponse{.output = Output(0, request.query.shape)};
  }

  client::ServerInfo info;
  int calls = 0;
  std::stop_source stop;
};

TEST_F(CheckAnswersTest, AStopLeavesTheRest) {
  const auto server = std::make_shared<StoppingConnection>();
  server->info = server_->info;
  std::vector<SampledAnswer> answers(4);
  for (SampledAnswer& answer : answers) answer = {.request = kHundred, .output = Output(0)};
  const CheckReport report =
      CheckAnswers(answers, *RequestBuilder::Create({}, kHundred), {client::Client(server)}, server->stop.get_token());
  EXPECT_EQ(report.right, 1);
  EXPECT_EQ(report.unchecked, 3);
  EXPECT_EQ(report.interrupted, 3) << "the one under way, and two that were not asked";
  EXPECT_EQ(report.why_unchecked, "interrupted");
  EXPECT_EQ(server->calls, 2);
}

TEST_F(CheckAnswersTest, AForwardIsComparedByteForByteWithItselfAlone) {
  const Workload workload = {.kind = Workload::Kind::kForward, .layer = "demo", .model_dim = 16};
  EXPECT_EQ(Check(workload, Output(0, {1, 100, 16})).right, 1);
  EXPECT_EQ(server_->forward_requests.back().version, 7) << "the one that answered";
  EXPECT_EQ(Check(workload, Output(-0.0f, {1, 100, 16})).wrong, 1) << "equal values are not equal bytes";
}

}  // namespace
}  // namespace triad::tools
