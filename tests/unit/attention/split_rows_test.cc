#include "core/attention/split_rows.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace triad {
namespace {

using Outcome = SplitRows::Outcome;

TEST(SplitRowsTest, TheLastToArriveIsToldWhetherAllCount) {
  SplitRows split(/*first_chunk=*/2, /*chunks=*/3);
  EXPECT_EQ(split.end_chunk(), 5);
  for (int odd = -1; odd < 3; ++odd) {  // and then begins anew
    EXPECT_EQ(split.Arrive(odd != 0), Outcome::kOthersAreLeft);
    EXPECT_EQ(split.Arrive(odd != 1), Outcome::kOthersAreLeft);
    EXPECT_EQ(split.Arrive(odd != 2), odd == -1 ? Outcome::kAllCount : Outcome::kSomeDoNot);
  }
}

TEST(SplitRowsTest, TheLastReadsWhatAllWrote) {
  constexpr int64_t kChunks = 4;
  constexpr int64_t kFloats = 100;
  SplitRows split(/*first_chunk=*/0, kChunks);
  for (int run = 0; run < 50; ++run) {
    std::atomic<int> last = 0;
    std::vector<std::thread> threads;
    for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
      threads.emplace_back([&, chunk] {
        std::fill_n(split.NewResultOf(chunk, kFloats), kFloats, static_cast<float>(chunk + run));
        if (split.Arrive(true) == Outcome::kOthersAreLeft) return;
        ++last;
        for (int64_t other = 0; other < kChunks; ++other) {
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
