#include "server/reply_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

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

}  // namespace
}  // namespace triad
