#include "server/reply_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "server/resize_unwritten.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

TEST(CheckPlanSizeTest, BoundsPairsOfASequenceAndAKvHeadAndNamesItsFlag) {
  AttentionProblem problem;
  problem.sequences.resize(5);
  problem.kv_heads = 4;
  EXPECT_TRUE(CheckPlanSize(problem, /*max_head_sequences=*/20).ok());
  const absl::Status status = CheckPlanSize(problem, /*max_head_sequences=*/19);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--max_head_sequences = 19; was 5 * 4"));
  problem.kv_heads = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(CheckPlanSize(problem, std::numeric_limits<int64_t>::max()).ok());
}

TEST(MakeReplyTest, GivesEachTensorItsShapeAndBytes) {
  AttentionProblem problem;
  problem.output_shape = {2, 3, 4, 5};
  problem.lse_shape = {2, 4, 3};
  problem.weights_shape = {2, 4, 3, 0};
  problem.return_lse = problem.return_weights = true;
  v1::AttendResponse response;
  const AttentionOutputs outputs = MakeReply(problem, {DType::kBf16, problem.output_shape}, response);
  EXPECT_EQ(response.output().dtype(), v1::BFLOAT16);
  EXPECT_EQ(response.output().data().size(), 2u * 3 * 4 * 5 * 2);
  EXPECT_EQ(static_cast<const void*>(outputs.output), response.output().data().data());
  EXPECT_EQ(response.lse().data().size(), 2u * 4 * 3 * 4);
  EXPECT_TRUE(response.has_weights());
  EXPECT_EQ(response.weights().data().size(), 0u);
}

TEST(ResizeUnwrittenTest, GivesRoomThatCanBeWritten) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{1'000'000}}) {
    std::string text;
    ResizeUnwritten(text, size);
    ASSERT_EQ(text.size(), size);
    std::fill(text.begin(), text.end(), 'x');
    EXPECT_EQ(text, std::string(size, 'x'));
  }
}

// It takes a later C++ than the rest, and would fill large replies without anyone noticing.
TEST(ResizeUnwrittenTest, DoesNotWriteWhereTheLibraryCanDoWithout) {
  std::string text(100, 'x');
  text.clear();  // the memory stays
  ResizeUnwritten(text, 50);
  EXPECT_EQ(text[1], 'x') << "filled with zeros";
}

}  // namespace
}  // namespace triad
