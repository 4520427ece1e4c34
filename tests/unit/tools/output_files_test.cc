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

TEST(OutputFilesTest, ALinkToAFileThatIsNotThereYetIsThatFile) {
  fs::create_symlink(TempPath("later"), TempPath("link"));
  fs::create_symlink("link", TempPath("link_of_link"));
  for (const std::string& link : {TempPath("link"), TempPath("link_of_link")}) {
    EXPECT_EQ(CheckOutputs({{"--a", link}}, {}), absl::OkStatus());
    EXPECT_EQ(CheckOutputs({{"--a", TempPath("later")}, {"--b", link}}, {}),
              absl::InvalidArgumentError("--b would overwrite the file of --a, " + TempPath("later")));
  }
  EXPECT_FALSE(fs::exists(TempPath("later")));
}

TEST(OutputFilesTest, DifferentFilesAndNoneAreNoFault) {
  EXPECT_EQ(CheckOutputs({{"--a", ""}, {"--b", ""}}, {{"--c", ""}}), absl::OkStatus());
  EXPECT_EQ(CheckOutputs({{"--a", TempPath("a")}, {"--b", TempPath("b")}}, {{"--c", TempPath("c")}}), absl::OkStatus());
  EXPECT_EQ(CheckOutputs({{"--a", "/dev/null"}, {"--b", "/dev/null"}}, {}), absl::OkStatus()) << "it keeps nothing";
  EXPECT_FALSE(fs::exists(TempPath("a")));
}

TEST(OutputFilesTest, PathsThatLeadNowhereAreNotOneFileForThat) {
  for (const char* loop : {"loop1", "loop2"}) fs::create_symlink(TempPath(loop), TempPath(loop));
  const absl::Status status = CheckOutputs({{"--a", TempPath("loop2/a")}}, {{"--c", TempPath("loop1/c")}});
  EXPECT_EQ(status.message().substr(0, 24), "--a cannot be written: /");
}

TEST(OutputFilesTest, WhatCannotBeWrittenIsToldByItsFlag) {
  const absl::Status status = CheckOutputs({{"--a", TempPath("none/a")}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message().substr(0, 24), "--a cannot be written: /");
}

TEST(OutputFilesTest, AFolderIsOneOrCanBecomeOne) {
  ASSERT_TRUE(WriteFile(TempPath("no_folder"), {"content"}).ok());
  fs::create_symlink(TempPath("gone"), TempPath("link_to_nothing"));
  for (const std::string& path : {TempPath("no_folder"), TempPath("no_folder/a/b"), TempPath("link_to_nothing/a")}) {
    EXPECT_EQ(CheckOutputFolder({"--to", path}).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(CheckOutputFolder({"--to", TempPath("no_folder/a")}).message(),
            "--to must be a folder, or not there yet; " + TempPath("no_folder") + " is none");
  for (const std::string& path : {TempPath("new/a/b"), ::testing::TempDir(), std::string("new"), std::string(".")}) {
    EXPECT_EQ(CheckOutputFolder({"--to", path}), absl::OkStatus()) << path;
  }
}

}  // namespace
}  // namespace triad::tools
