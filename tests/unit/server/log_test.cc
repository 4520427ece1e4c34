#include "server/log.h"

#include <gtest/gtest.h>

namespace triad {
namespace {

TEST(LogTest, TextIsOneLineOfNamedValues) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kInfo, "T", "listening on 127.0.0.1:1", {{"threads", "2"}}),
            "T I listening on 127.0.0.1:1 threads=2\n");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, LogLevel::kError, "T", "two\nlines", {{"why", "a \"b\"\n"}, {"none", ""}}),
            "T E two lines why=\"a \\\"b\\\"\\u000a\" none=\"\"\n");
}

TEST(LogTest, JsonIsOneObjectPerLine) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, LogLevel::kWarning, "T", "a \"b\"\\", {{"n", "1\t"}}),
            "{\"time\":\"T\",\"level\":\"warning\",\"message\":\"a \\\"b\\\"\\\\\",\"n\":\"1\\u0009\"}\n");
}

}  // namespace
}  // namespace triad
