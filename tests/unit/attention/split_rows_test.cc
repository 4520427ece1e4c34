#include "core/attention/split_rows.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace triad {
namespace {

using Outcome = SplitRows::Outcome;

TEST(SplitRowsTest, TheLastToArriveIsToldWhetherAllCount) {
  SplitRows split(/*first_part=*/2, /*parts=*/3, /*part_keys=*/100);
  EXPECT_EQ(split.end_part(), 5);
  EXPECT_EQ(split.KeysOf(4).begin, 400);
  EXPECT_EQ(split.KeysOf(4).end, 500);
  for (int odd = -1; odd < 3; ++odd) {  // and then begins anew
    EXPECT_EQ(split.Arrive(odd != 0), Outcome::kOthersAreLeft);
    EXPECT_EQ(split.Arrive(odd != 1), Outcome::kOthersAreLeft);
    EXPECT_EQ(split.Arrive(odd != 2), odd == -1 ? Outcome::kAllCount : Outcome::kSomeDoNot);
  }
}

TEST(SplitRowsTest, TheLastReadsWhatAllWrote) {
  constexpr int64_t kParts = 4;
  constexpr int64_t kFloats = 100;
  SplitRows split(/*first_part=*/0, kParts, /*part_keys=*/1);
  for (int run = 0; run < 50; ++run) {
    std::atomic<int> last = 0;
    std::vector<std::thread> threads;
    for (int64_t part = 0; part < kParts; ++part) {
      threads.emplace_back([&, part] {
        std::fill_n(split.NewResultOf(part, kFloats), kFloats, static_cast<float>(part + run));
        if (split.Arrive(true) == Outcome::kOthersAreLeft) return;
        ++last;
        for (int64_t other = 0; other < kParts; ++other) {
          for (int64_t i = 0; i < kFloats; ++i) {
            ASSERT_EQ(split.ResultOf(other)[i], static_cast<float>(other + run));
          }
        }
        split.DropResults();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(last, 1);
  }
}

}  // namespace
}  // namespace triad
