#include "server/stream_state.h"

#include <google/protobuf/duration.pb.h>
#include <gtest/gtest.h>

#include <limits>

namespace triad {
namespace {

constexpr int64_t kMaxItems = 2;
StreamAction Next(const StreamState& state) { return NextAction(state, kMaxItems); }

TEST(StreamStateTest, BeginsByReading) { EXPECT_EQ(Next({}), StreamAction::kRead); }

TEST(StreamStateTest, KeepsOneReadAndOneWriteWithGrpc) {
  EXPECT_EQ(Next({.is_reading = true}), StreamAction::kNone);
  EXPECT_EQ(Next({.unanswered = 2, .ready = 1, .is_reading = true, .is_writing = true}), StreamAction::kNone);
}

TEST(StreamStateTest, WritesBeforeItReads) { EXPECT_EQ(Next({.unanswered = 1, .ready = 1}), StreamAction::kWrite); }

TEST(StreamStateTest, ReadsNoFurtherAtTheBound) {
  EXPECT_EQ(Next({.unanswered = 1}), StreamAction::kRead);
  EXPECT_EQ(Next({.unanswered = 2}), StreamAction::kNone);
}

TEST(StreamStateTest, DoesNotReadWhileAFrameIsLookedAt) { EXPECT_EQ(Next({.is_taking = true}), StreamAction::kNone); }

TEST(StreamStateTest, HalfCloseEndsItOnceEverythingIsAnswered) {
  EXPECT_EQ(Next({.unanswered = 1, .is_half_closed = true}), StreamAction::kNone);
  EXPECT_EQ(Next({.unanswered = 1, .is_writing = true, .is_half_closed = true}), StreamAction::kNone);
  EXPECT_EQ(Next({.is_half_closed = true}), StreamAction::kFinish);
  EXPECT_TRUE(FinalStatus({.is_half_closed = true}).ok());
}

TEST(StreamStateTest, DrainEndsAnIdleStreamThoughAReadIsOpen) {
  EXPECT_EQ(Next({.is_reading = true, .is_draining = true}), StreamAction::kFinish);
  EXPECT_EQ(Next({.unanswered = 1, .is_draining = true}), StreamAction::kRead);
  EXPECT_EQ(Next({.is_taking = true, .is_draining = true}), StreamAction::kNone);
  EXPECT_TRUE(absl::IsUnavailable(FinalStatus({.is_draining = true})));
  EXPECT_TRUE(FinalStatus({.is_half_closed = true, .is_draining = true}).ok());
}

TEST(StreamStateTest, ABrokenStreamWritesNothingAndEndsWithItsItems) {
  EXPECT_EQ(Next({.unanswered = 1, .ready = 1, .is_broken = true}), StreamAction::kNone);
  EXPECT_EQ(Next({.is_broken = true}), StreamAction::kFinish);
  EXPECT_TRUE(absl::IsCancelled(FinalStatus({.is_half_closed = true, .is_broken = true})));
}

TEST(StreamStateTest, AnUnreadableFrameIsTheClientsFault) {
  EXPECT_TRUE(absl::IsInvalidArgument(FinalStatus({.is_half_closed = true, .is_unreadable = true})));
}

TEST(StreamStateTest, NothingFollowsTheEnd) {
  EXPECT_EQ(Next({.unanswered = 1, .ready = 1, .is_finished = true}), StreamAction::kNone);
}

TEST(ItemDeadlineTest, IsTheEarlierOfTimeoutAndStream) {
  const Time now{std::chrono::hours(1)};
  google::protobuf::Duration timeout;
  timeout.set_seconds(2);
  timeout.set_nanos(5);
  EXPECT_EQ(*ItemDeadline(nullptr, kNever, now), kNever);
  EXPECT_EQ(*ItemDeadline(&timeout, kNever, now), now + std::chrono::seconds(2) + std::chrono::nanoseconds(5));
  EXPECT_EQ(*ItemDeadline(&timeout, now + std::chrono::seconds(1), now), now + std::chrono::seconds(1));
  timeout.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*ItemDeadline(&timeout, kNever, now), kNever);
}

}  // namespace
}  // namespace triad
