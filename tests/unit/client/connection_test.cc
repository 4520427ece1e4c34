#include "triad/connection.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

TEST(ConnectionTest, WhatIsNotOverriddenIsUnimplementedByName) {
  Connection connection;
  const absl::Status status = connection.Forward({}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Forward"));
  std::optional<absl::Status> async;
  connection.AttendAsync({}, {}, [&](auto answer) { async = answer.status(); });
  ASSERT_TRUE(async.has_value());
  EXPECT_EQ(async->code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace triad::client
