#include "core/batching/scheduled_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;

TEST(HasRoomTest, KeepsTokensAndFlopWithinTheBudgetBesideOneOversizeTask) {
  constexpr ListBudget kBudget = {.max_tokens = 100, .max_flop = 1000};
  struct Case {
    ListLoad list;
    int64_t tokens;
    double flop;
    bool has_room;
  };
  const Case cases[] = {
      {{}, 1, 1, true},
      {{}, 100, 1000, true},
      {{.tasks = 1, .tokens = 60, .flop = 10}, 40, 10, true},
      {{.tasks = 1, .tokens = 60, .flop = 10}, 41, 10, false},
      {{.tasks = 1, .tokens = 1, .flop = 600}, 1, 400, true},
      {{.tasks = 1, .tokens = 1, .flop = 600}, 1, 401, false},
      {{}, 101, 1, true},
      {{}, 1, 1001, true},
      {{.tasks = 3, .tokens = 100, .flop = 1000}, 101, 1, true},  // oversize joins a full list
      {{.oversize_tasks = 1}, 101, 1, false},                     // but only one
      {{.oversize_tasks = 1}, 100, 1000, true},                   // which keeps no small one out
      {{}, std::numeric_limits<int64_t>::max(), 1, true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(HasRoom(c.list, c.tokens, c.flop, kBudget), c.has_room)
        << c.tokens << " tokens, " << c.flop << " flop beside " << c.list.tokens << ", " << c.list.flop << " and "
        << c.list.oversize_tasks << " oversize";
  }
}

TEST(LongestFirstTest, OrdersByWorkThenByNumberAndSurvivesAbsurdEstimates) {
  Ending ending;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto task = MakeFakeTask({.item_flop = {5, nan, 7, 5, -3, infinity}}, ending);
  std::vector<int64_t> order;
  for (const ScheduledItem& item : LongestFirst(*task)) {
    order.push_back(item.item);
    EXPECT_GE(item.flop, 0);
    EXPECT_LT(item.flop, infinity);
  }
  EXPECT_THAT(order, ElementsAre(5, 2, 0, 3, 1, 4));
}

}  // namespace
}  // namespace triad
