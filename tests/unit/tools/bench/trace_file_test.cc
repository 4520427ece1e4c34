#include "client/tools/bench/trace_file.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr char kHeader[] = R"({"triad_trace":1,"workload":{"kind":"attend","dtype":"FLOAT16","heads":4,"kv_heads":2}})";

std::string WriteText(const std::string& text) {
  const std::string path = TempPath("requests.trace");
  std::ofstream(path) << text;
  return path;
}

TEST(TraceFileTest, WhatIsWrittenIsRead) {
  const std::string path = TempPath("written.trace");
  const Workload workload = {.dtype = DType::kBf16,
                             .batch = 2,
                             .keep = 0.5,
                             .heads = 4,
                             .kv_heads = 2,
                             .qk_head_dim = 32,
                             .v_head_dim = 16,
                             .causal = true};
  auto writer = TraceWriter::Create(path, workload);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const PlannedRequest one = {.tokens = 3, .kv_len = 9, .seed = ~uint64_t{0}};
  const PlannedRequest two = {.tokens = 4, .kv_len = 4, .seed = 8};
  (*writer)->Add({.due = milliseconds(7), .request = two});
  (*writer)->Add({.due = milliseconds(5), .request = one});
  ASSERT_EQ((*writer)->Close(), absl::OkStatus());

  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(WorkloadJson(trace->workload), WorkloadJson(workload));
  ASSERT_EQ(trace->entries.size(), 2u);
  EXPECT_EQ(trace->entries[0].request, one) << "by time";
  EXPECT_EQ(trace->entries[0].due, Duration(milliseconds(5)));
  EXPECT_EQ(trace->entries[1].request, two);
}

TEST(TraceFileTest, AForwardsLayerIsKept) {
  const std::string path = TempPath("forward.trace");
  const Workload workload = {.kind = Workload::Kind::kForward, .layer = "demo", .layer_version = 2};
  auto writer = TraceWriter::Create(path, workload);
  ASSERT_TRUE(writer.ok());
  (*writer)->Add({.request = {.tokens = 1, .kv_len = 1}});
  ASSERT_EQ((*writer)->Close(), absl::OkStatus());
  EXPECT_EQ(ReadTrace(path)->workload.layer, "demo");
  EXPECT_EQ(ReadTrace(path)->workload.layer_version, 2);
}

TEST(TraceFileTest, OfALineOnlyTokensMustBeThere) {
  const std::string lines = "\n{\"due_ns\":9,\"tokens\":5}\n{\"tokens\":6,\"kv_len\":7}\n";
  const auto trace = ReadTrace(WriteText(kHeader + lines));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->workload.dtype, DType::kF16);
  EXPECT_EQ(trace->entries[0].request, (PlannedRequest{.tokens = 5, .kv_len = 5, .seed = 2}));
  EXPECT_EQ(trace->entries[1].request, (PlannedRequest{.tokens = 6, .kv_len = 7, .seed = 3}));
  EXPECT_EQ(trace->entries[1].due, Duration(9));
}

TEST(TraceFileTest, OneLineWithATimeMakesATraceWithTimes) {
  const std::string header = std::string(kHeader) + "\n";
  EXPECT_FALSE(ReadTrace(WriteText(header + "{\"tokens\":5}\n{\"tokens\":6}\n"))->has_times);
  EXPECT_TRUE(ReadTrace(WriteText(header + "{\"tokens\":5}\n{\"tokens\":6,\"due_ns\":0}\n"))->has_times);
}

TEST(TraceFileTest, AFaultNamesFileAndLine) {
  const std::string header = std::string(kHeader) + "\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1"},
      {"not json\n", "line 1"},
      {R"({"triad_trace":2,"workload":{}})", "line 1"},
      {R"({"triad_trace":1,"workload":{"kind":"explain"}})", "line 1"},
      {R"({"triad_trace":1,"workload":{"heads":4,"kv_heads":3}})", "line 1"},
      {header, "no requests follow"},
      {header + "{\"tokens\":1}\n{\"tokens\":0}\n", "line 3"},
      {header + "{\"due_ns\":1}\n", "line 2"},
      {header + "{\"tokens\":\"many\"}\n", "line 2"},
      {header + "{\"tokens\":1,\"due_ns\":-1}\n", "line 2"},
      {header + "[1]\n", "line 2"},
  };
  for (const auto& [text, expected] : cases) {
    const auto trace = ReadTrace(WriteText(text));
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr(expected)) << text;
  }
}

TEST(TraceFileTest, EmptyLinesAreLeftOutAndCounted) {
  const auto trace = ReadTrace(WriteText(std::string(kHeader) + "\n\n{\"tokens\":5}\r\n \t\r\n{\"tokens\":6}\n\n\n"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->entries.size(), 2u);
  EXPECT_EQ(trace->entries[1].request, (PlannedRequest{.tokens = 6, .kv_len = 6, .seed = 5})) << "the line's number";
}

TEST(TraceFileTest, WhatTheSystemRefusesIsToldInItsWords) {
  const std::string absent = TempPath("absent/a.trace");
  EXPECT_EQ(ReadTrace(absent).status(), absl::NotFoundError(absent + ": No such file or directory"));
  EXPECT_THAT(std::string(ReadTrace(::testing::TempDir()).status().message()), HasSubstr("Is a directory"));
  EXPECT_EQ(TraceWriter::Create(absent, {}).status(), absl::NotFoundError(absent + ": No such file or directory"));
  const auto full = TraceWriter::Create("/dev/full", {});
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_THAT(std::string((*full)->Close().message()),
              HasSubstr("/dev/full: not all of it could be written: No space left on device"));
}

}  // namespace
}  // namespace triad::tools
