#include "server/in_flight_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

TEST(InFlightLedgerTest, GivesBackWithTheHold) {
  InFlightLedger ledger({.max_bytes = 10});
  {
    InFlightLedger::Answer answer = ledger.Acquire({.bytes = 6, .peer = "a"});
    ASSERT_TRUE(answer.status.ok());
    const InFlightLedger::Hold moved = std::move(answer.hold);
    EXPECT_EQ(ledger.requests(), 1);
    EXPECT_EQ(ledger.bytes(), 6);
    EXPECT_EQ(ledger.peers(), 1);
  }
  EXPECT_EQ(ledger.requests(), 0);
  EXPECT_EQ(ledger.bytes(), 0);
  EXPECT_EQ(ledger.peers(), 0);
}

TEST(InFlightLedgerTest, TellsLoadFromATooLargeRequest) {
  InFlightLedger ledger({.max_bytes = 10});
  const auto held = ledger.Acquire({.bytes = 6});
  const auto full = ledger.Acquire({.bytes = 5});
  EXPECT_TRUE(absl::IsResourceExhausted(full.status));
  EXPECT_EQ(full.refusal, Refusal::kBytes);
  const auto too_large = ledger.Acquire({.bytes = 11});
  EXPECT_TRUE(absl::IsInvalidArgument(too_large.status));
  EXPECT_EQ(too_large.refusal, std::nullopt);
  EXPECT_TRUE(ledger.Acquire({.bytes = 4}).status.ok());
}

TEST(InFlightLedgerTest, DrainsWhenTheLastHoldIsGone) {
  InFlightLedger ledger({.max_bytes = 10});
  auto held = ledger.Acquire({.bytes = 1});
  EXPECT_TRUE(ledger.CheckOpen().ok());
  ledger.BeginDrain();
  EXPECT_TRUE(absl::IsUnavailable(ledger.CheckOpen()));
  const auto refused = ledger.Acquire({.bytes = 1});
  EXPECT_TRUE(absl::IsUnavailable(refused.status));
  EXPECT_EQ(refused.refusal, Refusal::kDraining);
  EXPECT_FALSE(ledger.WaitIdle(RealClock(), RealClock().Now())) << "the deadline is now and a hold is out";
  std::thread last([hold = std::move(held.hold)]() mutable { InFlightLedger::Hold gone = std::move(hold); });
  EXPECT_TRUE(ledger.WaitIdle(RealClock(), kNever));
  last.join();
}

TEST(InFlightLedgerTest, BoundsTheRequestsOfEachPeer) {
  InFlightLedger ledger({.max_bytes = 100, .max_peer_requests = 2});
  auto first = ledger.Acquire({.bytes = 1, .peer = "a"});
  const auto second = ledger.Acquire({.bytes = 1, .peer = "a"});
  const auto third = ledger.Acquire({.bytes = 1, .peer = "a"});
  EXPECT_TRUE(absl::IsResourceExhausted(third.status));
  EXPECT_EQ(third.refusal, Refusal::kPeer);
  EXPECT_THAT(std::string(third.status.message()),
              HasSubstr("has 2 requests here, --max_peer_in_flight_requests is 2"));
  EXPECT_TRUE(ledger.Acquire({.bytes = 1, .peer = "b"}).status.ok());
  EXPECT_TRUE(ledger.Acquire({.bytes = 1}).status.ok()) << "nobody's";
  first = {};
  EXPECT_TRUE(ledger.Acquire({.bytes = 1, .peer = "a"}).status.ok());
}

TEST(InFlightLedgerTest, BoundsTheBytesOfEachPeerButNotOfItsOnlyRequest) {
  InFlightLedger ledger({.max_bytes = 100, .max_peer_bytes = 10});
  auto only = ledger.Acquire({.bytes = 50, .peer = "a"});
  EXPECT_TRUE(only.status.ok());
  const auto more = ledger.Acquire({.bytes = 0, .peer = "a"});
  EXPECT_EQ(more.refusal, Refusal::kPeer);
  EXPECT_THAT(std::string(more.status.message()),
              HasSubstr("holds 50 of --max_peer_in_flight_bytes = 10; this request needs 0 more"));
  only = {};
  const auto fits = ledger.Acquire({.bytes = 6, .peer = "a"});
  EXPECT_TRUE(ledger.Acquire({.bytes = 4, .peer = "a"}).status.ok());
  EXPECT_FALSE(ledger.Acquire({.bytes = 5, .peer = "a"}).status.ok());
}

TEST(InFlightLedgerTest, RemembersNobodyWhoHasNothingHere) {
  constexpr uint32_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  InFlightLedger ledger({.max_bytes = 1000, .max_peer_requests = 3, .max_peer_bytes = 40});
  std::vector<InFlightLedger::Hold> holds(50);
  for (int i = 0; i < 20'000; ++i) {
    const std::string peer = absl::StrCat("ipv4:10.0.0.", random() % 200);
    const auto bytes = static_cast<int64_t>(random() % 40);
    holds[random() % holds.size()] = std::move(ledger.Acquire({.bytes = bytes, .peer = peer}).hold);
    ASSERT_LE(ledger.peers(), ledger.requests());
    ASSERT_LE(ledger.requests(), 51);
  }
  holds.clear();
  EXPECT_EQ(ledger.peers(), 0);
  EXPECT_EQ(ledger.bytes(), 0);
}

}  // namespace
}  // namespace triad
