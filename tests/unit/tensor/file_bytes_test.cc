#include "core/tensor/file_bytes.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

std::string Text(const FileCopy& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST(FileCopyTest, HoldsWhatTheFileHeld) {
  const std::string path = TempPath("held");
  const std::string content(100001, 'x');  // past a page, and not whole pages
  ASSERT_TRUE(WriteFile(path, {content, "end"}).ok());
  absl::StatusOr<FileCopy> file = FileCopy::Read(path, 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  const FileCopy moved = *std::move(file);
  EXPECT_EQ(Text(moved), content + "end");
}

TEST(FileCopyTest, OutlivesTruncationAndOverwriting) {
  const std::string path = TempPath("truncated");
  const std::string content(3 * 65536, 'a');
  ASSERT_TRUE(WriteFile(path, {content}).ok());
  const absl::StatusOr<FileCopy> file = FileCopy::Read(path, 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(path.c_str(), 0), 0);  // reading a map of it would be SIGBUS from here on
  EXPECT_EQ(Text(*file), content);
  ASSERT_TRUE(WriteFile(path, {std::string(3 * 65536, 'b')}).ok());
  EXPECT_EQ(Text(*file), content);
}

TEST(FileCopyTest, AnEmptyFileHasNoBytes) {
  const std::string path = TempPath("empty");
  ASSERT_TRUE(WriteFile(path, {}).ok());
  const absl::StatusOr<FileCopy> file = FileCopy::Read(path, 0);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes().empty());
}

TEST(FileCopyTest, RefusesMoreThanItIsAllowedBeforeReading) {
  const std::string path = TempPath("large");
  ASSERT_TRUE(WriteFile(path, {"12345"}).ok());
  EXPECT_TRUE(FileCopy::Read(path, 5).ok());
  EXPECT_EQ(FileCopy::Read(path, 4).status(),
            absl::InvalidArgumentError(absl::StrCat(path, ": 5 bytes, of at most 4")));
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);  // a hole of a terabyte
  EXPECT_EQ(FileCopy::Read(path, 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
}

// What /proc calls a regular file of no bytes has some when it is read, as a file does that grows.
TEST(FileCopyTest, RefusesAFileThatIsNotTheSizeItSaid) {
  const absl::Status status = FileCopy::Read("/proc/self/status", 1 << 20).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/self/status: changed while it was read"));
}

TEST(FileCopyTest, NamesWhatIsNoFile) {
  EXPECT_EQ(FileCopy::Read(TempPath("none"), 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(FileCopy::Read(TempPath("none"), 1).status().message()), HasSubstr(TempPath("none")));
  EXPECT_THAT(std::string(FileCopy::Read(::testing::TempDir(), 1).status().message()), HasSubstr("not a regular file"));
}

TEST(CheckWritableTest, SaysWhatWritingWouldAndChangesNothing) {
  const std::string fresh = TempPath("fresh");
  EXPECT_TRUE(CheckWritable(fresh).ok());
  EXPECT_NE(access(fresh.c_str(), F_OK), 0) << "left nothing behind";
  ASSERT_TRUE(WriteFile(fresh, {"content"}).ok());
  EXPECT_TRUE(CheckWritable(fresh).ok());
  EXPECT_EQ(Text(*FileCopy::Read(fresh, 100)), "content");
  EXPECT_TRUE(CheckWritable("/dev/null").ok());

  for (const std::string& path :
       {TempPath("no/folder"), fresh + "/below a file", ::testing::TempDir(), std::string()}) {
    const absl::Status status = CheckWritable(path);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_EQ(status, WriteFile(path, {"content"})) << path;
  }
}

TEST(CheckWritableTest, LooksWhereLinksLead) {
  const std::string beside = TempPath("link_beside");
  ASSERT_EQ(symlink("not_there_yet", beside.c_str()), 0);
  EXPECT_EQ(BehindLinks(beside), TempPath("not_there_yet"));
  EXPECT_TRUE(CheckWritable(beside).ok());
  EXPECT_NE(access(beside.c_str(), F_OK), 0) << "left nothing behind";
  const std::string circle = TempPath("circle");
  ASSERT_EQ(symlink(circle.c_str(), circle.c_str()), 0);
  const std::string lost = TempPath("lost");
  ASSERT_EQ(symlink(TempPath("no/folder").c_str(), lost.c_str()), 0);
  for (const std::string& path : {circle, lost}) {
    const absl::Status status = CheckWritable(path);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_EQ(status, WriteFile(path, {"content"})) << path;
  }
}

}  // namespace
}  // namespace triad
