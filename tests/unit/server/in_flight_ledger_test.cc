#include "server/in_flight_ledger.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace triad {
namespace {

TEST(InFlightLedgerTest, GivesBackWithTheHold) {
  InFlightLedger ledger(/*max_bytes=*/10);
  {
    auto hold = ledger.Acquire(6);
    ASSERT_TRUE(hold.ok());
    const InFlightLedger::Hold moved = *std::move(hold);
    EXPECT_EQ(ledger.requests(), 1);
    EXPECT_EQ(ledger.bytes(), 6);
  }
  EXPECT_EQ(ledger.requests(), 0);
  EXPECT_EQ(ledger.bytes(), 0);
}

TEST(InFlightLedgerTest, TellsLoadFromATooLargeRequest) {
  InFlightLedger ledger(/*max_bytes=*/10);
  const auto hold = ledger.Acquire(6);
  EXPECT_TRUE(absl::IsResourceExhausted(ledger.Acquire(5).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ledger.Acquire(11).status()));
  EXPECT_TRUE(ledger.Acquire(4).ok());
}

TEST(InFlightLedgerTest, DrainsWhenTheLastHoldIsGone) {
  InFlightLedger ledger(/*max_bytes=*/10);
  auto hold = ledger.Acquire(1);
  EXPECT_TRUE(ledger.CheckOpen().ok());
  ledger.BeginDrain();
  EXPECT_TRUE(absl::IsUnavailable(ledger.CheckOpen()));
  EXPECT_TRUE(absl::IsUnavailable(ledger.Acquire(1).status()));
  EXPECT_FALSE(ledger.WaitIdle(RealClock(), RealClock().Now())) << "the deadline is now and a hold is out";
  std::thread last([held = *std::move(hold)]() mutable { InFlightLedger::Hold gone = std::move(held); });
  EXPECT_TRUE(ledger.WaitIdle(RealClock(), kNever));
  last.join();
}

}  // namespace
}  // namespace triad
