#include "client/tools/bench/check_answers.h"

#include <memory>
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

TEST_F(CheckAnswersTest, AForwardIsComparedByteForByteWithItselfAlone) {
  const Workload workload = {.kind = Workload::Kind::kForward, .layer = "demo", .model_dim = 16};
  EXPECT_EQ(Check(workload, Output(0, {1, 100, 16})).right, 1);
  EXPECT_EQ(server_->forward_requests.back().version, 7) << "the one that answered";
  EXPECT_EQ(Check(workload, Output(-0.0f, {1, 100, 16})).wrong, 1) << "equal values are not equal bytes";
}

}  // namespace
}  // namespace triad::tools
