#include "client/src/check_target.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

TEST(CheckTargetTest, WhatGrpcCanReadIsLeftToIt) {
  for (const char* target :
       {"127.0.0.1:8470", "localhost:1", "host.example:65535", "[::1]:8470", "[fe80::1%eth0]:8470", "host:https",
        "unix:triad.sock", "unix:///run/triad.sock", "unix-abstract:triad", "dns:///host", "dns:host:8470",
        "ipv4:10.0.0.1:8470,10.0.0.2:8470", "ipv6:[::1]:8470", "xds:///triad"}) {
    EXPECT_EQ(CheckTarget(target, /*tls=*/false), absl::OkStatus()) << target;
  }
}

TEST(CheckTargetTest, WhatGrpcWouldGuessAtIsRefused) {
  for (const char* target : {"", ",", "a:1,b:2", "localhost:", ":8470", "localhost:65536", "localhost:0",
                             "localhost:99999999999", "::1", "::1:8470", "[::1", "http://localhost:8470",
                             "https://localhost", "localhost:8470/", " localhost:8470", "local host:8470"}) {
    for (const bool tls : {false, true}) {
      const absl::Status status = CheckTarget(target, tls);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
      EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("was \"") + target + "\""));
    }
  }
}

TEST(CheckTargetTest, APortMayBeLeftOutForTlsOnly) {
  for (const char* target : {"host.example", "[::1]"}) {
    EXPECT_FALSE(CheckTarget(target, /*tls=*/false).ok()) << target;
    EXPECT_TRUE(CheckTarget(target, /*tls=*/true).ok()) << target;
  }
}

}  // namespace
}  // namespace triad::client
