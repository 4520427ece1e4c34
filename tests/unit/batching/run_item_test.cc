#include "core/batching/run_item.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

absl::Status RunOne(std::function<absl::Status(int64_t)> run) {
  Ending ending;
  Scratch scratch;
  return RunItemCatching(*MakeFakeTask({.run = std::move(run)}, ending), /*item=*/0, scratch);
}

TEST(RunItemTest, PassesTheStatusOn) {
  EXPECT_EQ(RunOne([](int64_t) { return absl::OkStatus(); }).code(), absl::StatusCode::kOk);
  EXPECT_EQ(RunOne([](int64_t) { return absl::AbortedError("x"); }).code(), absl::StatusCode::kAborted);
}

TEST(RunItemTest, TurnsExceptionsIntoStatus) {
  const auto no_memory = RunOne([](int64_t) -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(no_memory.code(), absl::StatusCode::kResourceExhausted);
  const auto other = RunOne([](int64_t) -> absl::Status { throw std::runtime_error("no primitive"); });
  EXPECT_EQ(other.code(), absl::StatusCode::kInternal);
  EXPECT_NE(std::string(other.message()).find("no primitive"), std::string::npos) << other;
  EXPECT_EQ(RunOne([](int64_t) -> absl::Status { throw 7; }).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace triad
