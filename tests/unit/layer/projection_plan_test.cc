#include "core/layer/projection_plan.h"

#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/cpu.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

std::unique_ptr<const Projection> Zeros(int64_t inputs, int64_t outputs) {
  const ProjectionWeights weights{.inputs = inputs,
                                  .rows = std::vector<const float*>(static_cast<size_t>(outputs), nullptr)};
  absl::StatusOr<std::unique_ptr<const Projection>> projection = Projection::Create(weights, DetectInstructionSet());
  TRIAD_CHECK(projection.ok(), "oneDNN has this product");
  return *std::move(projection);
}

TEST(ProjectionPlanTest, CoversEveryRowAndBlockOnce) {
  const auto projection = Zeros(/*inputs=*/256, /*outputs=*/1000);
  const auto blocks = static_cast<int64_t>(projection->blocks().size());
  for (int64_t rows : {0, 1, 15, 16, 17, 191, 192, 193, 1000}) {
    std::vector<int> covered(static_cast<size_t>(rows * blocks));
    for (const ProjectionItem& item : PlanProjection(*projection, rows)) {
      for (int64_t row = item.row_begin; row < item.row_end; ++row) {
        for (int64_t block = item.block_begin; block < item.block_end; ++block) ++covered[row * blocks + block];
      }
    }
    EXPECT_EQ(covered, std::vector<int>(covered.size(), 1)) << rows << " rows";
  }
}

TEST(ProjectionPlanTest, LeavesOneTokenWhole) { EXPECT_EQ(PlanProjection(*Zeros(512, 1536), /*rows=*/1).size(), 1u); }

TEST(ProjectionPlanTest, SpreadsOneTokenOfAWideLayerOverThreads) {
  EXPECT_GE(PlanProjection(*Zeros(2048, 6144), /*rows=*/1).size(), 8u);
}

TEST(ProjectionPlanTest, SpreadsOneLargeRequestOverManyThreads) {
  EXPECT_GE(PlanProjection(*Zeros(512, 1536), /*rows=*/1024).size(), 40u);
}

TEST(ProjectionPlanTest, PadsAnItemByLessThanSixteenRows) {
  const auto projection = Zeros(512, 512);
  for (int64_t rows = 1; rows <= 192; ++rows) {
    double flop = 0;
    for (const ProjectionItem& item : PlanProjection(*projection, rows)) flop += item.flop;
    const double row_flop = 2.0 * 512 * 512;
    EXPECT_LE(flop, row_flop * static_cast<double>(rows + 15)) << rows << " rows";
    EXPECT_GE(flop, row_flop * static_cast<double>(rows)) << rows << " rows";
  }
}

TEST(NextTileClassTest, TakesTheLargestClassThatIsNotLarger) {
  const auto rows_of = [](int64_t rows) { return kRowClasses[NextTileClass(rows)]; };
  EXPECT_EQ(rows_of(1), 16);
  EXPECT_EQ(rows_of(32), 16);
  EXPECT_EQ(rows_of(33), 48);
  EXPECT_EQ(rows_of(80), 64);
  EXPECT_EQ(rows_of(177), 192);
  EXPECT_EQ(rows_of(5000), 192);
}

}  // namespace
}  // namespace triad
