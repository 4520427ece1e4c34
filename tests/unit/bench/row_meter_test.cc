// What the meter makes of what it measures, on a machine that says what the test wants: no time passes.
#include "tests/bench/row_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace triad {
namespace {

using ::testing::ElementsAre;

// What the machine answers, one after the other; the last one again and again.
class Script {
 public:
  explicit Script(std::vector<double> answers) : answers_(std::move(answers)) {}

  double Next() {
    const double answer = answers_[next_];
    if (next_ + 1 < answers_.size()) ++next_;
    ++asked_;
    return answer;
  }
  int asked() const { return asked_; }

 private:
  std::vector<double> answers_;
  size_t next_ = 0;
  int asked_ = 0;
};

class RowMeterTest : public ::testing::Test {
 protected:
  RowMeter Meter(const BenchOptions& options, bool larger_counts = true) {
    const MachineLimit limit{.unit = "flop",
                             .names = {"peak"},
                             .measure =
                                 [this](double done) {
                                   done_.push_back(done);
                                   return std::vector<double>{limits_.Next()};
                                 },
                             .piece_work = 10,
                             .larger_counts = larger_counts};
    return RowMeter(options, limit,
                    {.probe_cores = [this](int) { return cores_.Next(); },
                     .run_on_threads =
                         [this](int threads, const std::function<void(int)>& work) {
                           for (int thread = 0; thread < threads; ++thread) work(thread);
                           return seconds_.Next();
                         }});
  }

  // A call of two pieces, of 10 and of 5.
  static void Call(RowMeter& meter) {
    meter.Run(std::vector<double>{5, 5, 5}, [](size_t, int) {});
    meter.EndCall();
  }
  // As many calls as it wants, of one piece.
  static int CallAll(RowMeter& meter) {
    int calls = 0;
    for (; meter.WantsCall(); ++calls) {
      meter.Run(std::vector<double>{10}, [](size_t, int) {});
      meter.EndCall();
    }
    return calls;
  }

  std::vector<double> done_;  // what the limit was told
  Script cores_{std::vector<double>{2}};
  Script limits_{std::vector<double>{100}};
  Script seconds_{std::vector<double>{1}};
};

TEST_F(RowMeterTest, RunsEachItemOnceAndCutsPiecesByWork) {
  RowMeter meter = Meter({});
  std::vector<size_t> items;
  meter.Run(std::vector<double>{4, 7, 12, 1}, [&](size_t item, int) { items.push_back(item); });
  meter.Run(std::vector<double>{1}, [&](size_t item, int) { items.push_back(10 + item); });
  meter.EndCall();
  EXPECT_THAT(items, ElementsAre(0, 1, 2, 3, 10));
  EXPECT_EQ(limits_.asked(), 1 + 3) << "before, and behind {4, 7}, {12} and {1, 1}";
}

TEST_F(RowMeterTest, TellsTheLimitWhichPartIsDone) {
  RowMeter meter = Meter({});
  for (int i = 0; i < 2; ++i) {
    meter.Run(std::vector<double>{10, 5, 5, 5}, [](size_t, int) {});
    meter.EndCall();
  }
  EXPECT_THAT(done_, ElementsAre(0, 0.25, 0.75, 1, /**/ 0, 0.25, 0.75, 1));
}

TEST_F(RowMeterTest, CostIsTheSumOfThePiecesMedians) {
  seconds_ = Script({1, 30, /**/ 20, 4, /**/ 3, 5});
  RowMeter meter = Meter({.seconds = 63});
  for (int i = 0; i < 3; ++i) Call(meter);
  EXPECT_FALSE(meter.WantsCall());
  ASSERT_TRUE(meter.has_calls());
  EXPECT_EQ(meter.MedianCost(), (3 + 5) * 100);
  EXPECT_EQ(meter.MeanSeconds(), 21);
}

TEST_F(RowMeterTest, ThePeakBesideAPieceIsTheLargerAndOfMemoryTheMean) {
  for (const bool larger_counts : {true, false}) {
    limits_ = Script({100, 300, 200});
    RowMeter meter = Meter({.seconds = 2}, larger_counts);
    Call(meter);
    EXPECT_FALSE(meter.WantsCall());
    EXPECT_EQ(meter.MedianCost(), larger_counts ? 300 + 300 : 200 + 250);
  }
}

TEST_F(RowMeterTest, CallsThatLackedACoreAreMadeAgain) {
  cores_ = Script({2, /*after the first calls*/ 1.5, 2, 2});
  RowMeter meter = Meter({.seconds = 6, .threads = 2});
  EXPECT_EQ(CallAll(meter), 4 + 6) << "a probe every 2 s: one of them spoils what is before and behind it";
  EXPECT_EQ(meter.MeanSeconds(), 1);
}

TEST_F(RowMeterTest, GivesUpWhenACoreIsMissingForTwiceTheTime) {
  cores_ = Script(std::vector<double>{1});
  RowMeter meter = Meter({.seconds = 6, .threads = 2});
  EXPECT_EQ(CallAll(meter), 12);
  EXPECT_FALSE(meter.has_calls());
}

TEST_F(RowMeterTest, OneThreadNeedsNoSecondCore) {
  cores_ = Script(std::vector<double>{1});
  RowMeter meter = Meter({.seconds = 6, .threads = 1});
  EXPECT_EQ(CallAll(meter), 6);
  EXPECT_TRUE(meter.has_calls());
}

TEST_F(RowMeterTest, OfTwoByTurnsBothAreProbed) {
  RowMeter one = Meter({.seconds = 1});
  RowMeter other = Meter({.seconds = 9});
  Call(one);
  Call(other);
  const int asked = cores_.asked();
  EXPECT_TRUE(EitherWantsCall(one, other));
  EXPECT_EQ(cores_.asked(), asked + 2);
}

}  // namespace
}  // namespace triad
