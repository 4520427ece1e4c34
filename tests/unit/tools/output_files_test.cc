#include "client/tools/output_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor/file_bytes.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"

namespace triad::tools {
namespace {

namespace fs = std::filesystem;

// Every way to name one file twice.
TEST(OutputFilesTest, AFileIsOneOutputAndNoInputHoweverItIsSpelled) {
  const std::string path = TempPath("file");
  ASSERT_TRUE(WriteFile(path, {"content"}).ok());
  fs::create_symlink(path, TempPath("symlink"));
  fs::create_hard_link(path, TempPath("hardlink"));
  for (const std::string& spelling : {path, TempPath("symlink"), TempPath("hardlink"), TempPath("./file")}) {
    const NamedFile other = {"--b", spelling};
    EXPECT_EQ(CheckOutputs({{"--a", path}, other}, {}).code(), absl::StatusCode::kInvalidArgument) << spelling;
    EXPECT_EQ(CheckOutputs({{"--a", path}}, {other}).code(), absl::StatusCode::kInvalidArgument) << spelling;
  }
  EXPECT_EQ(CheckOutputs({{"--a", TempPath("new")}, {"--b", TempPath("./new")}}, {}),
            absl::InvalidArgumentError("--b would overwrite the file of --a, " + TempPath("new")));
  EXPECT_EQ(CheckOutputs({{"--a", "new"}, {"--b", "./new"}}, {}),
            absl::InvalidArgumentError("--b would overwrite the file of --a, new"));
}

TEST(OutputFilesTest, DifferentFilesAndNoneAreNoFault) {
  EXPECT_EQ(CheckOutputs({{"--a", ""}, {"--b", ""}}, {{"--c", ""}}), absl::OkStatus());
  EXPECT_EQ(CheckOutputs({{"--a", TempPath("a")}, {"--b", TempPath("b")}}, {{"--c", TempPath("c")}}), absl::OkStatus());
  EXPECT_EQ(CheckOutputs({{"--a", "/dev/null"}, {"--b", "/dev/null"}}, {}), absl::OkStatus()) << "it keeps nothing";
  EXPECT_FALSE(fs::exists(TempPath("a")));
}

TEST(OutputFilesTest, WhatCannotBeWrittenIsToldByItsFlag) {
  const absl::Status status = CheckOutputs({{"--a", TempPath("none/a")}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message().substr(0, 24), "--a cannot be written: /");
}

}  // namespace
}  // namespace triad::tools
