#include "server/layer_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/server_fixture.h"

namespace triad {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A layer directory, and beside it a folder that nothing may lead to.
class LayerDirectoryTest : public ::testing::Test {
 protected:
  LayerDirectoryTest() {
    fs::create_directories(root_);
    PutVersion(folder_ / "outside" / "1");
  }

  static void PutVersion(const fs::path& version) {
    fs::create_directories(version);
    std::ofstream(version / "layer.textproto") << "a spec";
    std::ofstream(version / "weights.safetensors") << "weights";
  }
  absl::StatusOr<LayerFolder> Find(absl::string_view name, std::optional<int64_t> version = std::nullopt) {
    return FindLayerFolder(root_.string(), name, version);
  }
  // FAILED_PRECONDITION, and not a word of what lies outside.
  void ExpectLeadsOut(absl::string_view name, std::optional<int64_t> version) {
    const absl::Status status = Find(name, version).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("must lie in the layer directory"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("outside")));
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  const fs::path root_ = folder_ / "layers";
};

TEST_F(LayerDirectoryTest, FindsTheVersionNamedOrTheHighest) {
  for (const char* version : {"minilm/0/2", "minilm/0/10", "minilm/0/9"}) PutVersion(root_ / version);
  EXPECT_EQ(Find("minilm/0")->version, 10);
  EXPECT_THAT(Find("minilm/0")->path, EndsWith("minilm/0/10"));
  EXPECT_EQ(Find("minilm/0", 9)->version, 9);
  EXPECT_EQ(Find("minilm/0", 9)->name, "minilm/0");
}

TEST_F(LayerDirectoryTest, OnlyCanonicalNumbersWithASpecAreVersions) {
  PutVersion(root_ / "a" / "1");
  for (const char* other : {"02", "0", "-3", "next", "9x"}) PutVersion(root_ / "a" / other);
  fs::create_directories(root_ / "a" / "7");  // still being copied
  std::ofstream(root_ / "a" / "8") << "a file";
  EXPECT_EQ(Find("a")->version, 1);
}

TEST_F(LayerDirectoryTest, WhatIsMissingIsNotFound) {
  fs::create_directories(root_ / "empty");
  PutVersion(root_ / "a" / "1");
  fs::remove(root_ / "a" / "1" / "weights.safetensors");
  for (const auto& status : {Find("nowhere").status(), Find("nowhere", 1).status(), Find("empty").status(),
                             Find("a", 2).status(), Find("a", 1).status(), Find("a/1/layer.textproto").status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(folder_.string())));
  }
}

TEST_F(LayerDirectoryTest, SymbolicLinksMayNotLeadOut) {
  fs::create_directory_symlink(folder_ / "outside", root_ / "layer");
  ExpectLeadsOut("layer", 1);
  ExpectLeadsOut("layer", std::nullopt);

  fs::create_directories(root_ / "version");
  fs::create_directory_symlink(folder_ / "outside" / "1", root_ / "version" / "1");
  ExpectLeadsOut("version", 1);

  PutVersion(root_ / "file" / "1");
  fs::remove(root_ / "file" / "1" / "weights.safetensors");
  fs::create_symlink(folder_ / "outside" / "1" / "weights.safetensors", root_ / "file" / "1" / "weights.safetensors");
  ExpectLeadsOut("file", 1);

  PutVersion(folder_ / "layers-too" / "1");  // begins like the directory's own name
  fs::create_directory_symlink(folder_ / "layers-too", root_ / "alike");
  ExpectLeadsOut("alike", 1);
  fs::create_directory_symlink("..", root_ / "up");
  ExpectLeadsOut("up", std::nullopt);
}

TEST_F(LayerDirectoryTest, SymbolicLinksInsideAreFollowed) {
  PutVersion(root_ / "a" / "1");
  fs::create_directory_symlink("1", root_ / "a" / "2");
  fs::create_directory_symlink("a", root_ / "alias");
  EXPECT_THAT(Find("a")->path, EndsWith("a/1"));
  EXPECT_EQ(Find("alias", 2)->version, 2);
  const fs::path link = folder_ / "link";
  fs::create_directory_symlink(root_, link);
  EXPECT_TRUE(FindLayerFolder(link.string(), "a", 1).ok()) << "the directory itself may be one";
}

TEST_F(LayerDirectoryTest, ListsEveryNameThatHasAVersion) {
  for (const char* version : {"minilm/0/1", "minilm/1/1", "demo/3", "demo/4"}) PutVersion(root_ / version);
  fs::create_directories(root_ / "empty" / "1");
  PutVersion(root_ / "not a name" / "1");
  PutVersion(root_ / "1");  // a version of nothing
  std::ofstream(root_ / "README") << "a file";
  fs::create_directory_symlink(root_, root_ / "loop");
  EXPECT_THAT(*ListLayerNames(root_.string()), ElementsAre("demo", "minilm/0", "minilm/1"));
}

TEST_F(LayerDirectoryTest, ListsNothingOfFoldersThatBeginWithADot) {
  PutVersion(root_ / "demo" / "3");
  for (const char* version : {".staging/demo/1", "demo/.staging/4", ".git/1"}) PutVersion(root_ / version);
  EXPECT_THAT(*ListLayerNames(root_.string()), ElementsAre("demo"));
}

TEST_F(LayerDirectoryTest, ListsWhileFoldersComeAndGo) {
  PutVersion(root_ / "demo" / "3");
  std::atomic<bool> is_over{false};
  std::thread changing([&] {
    while (!is_over) {
      fs::create_directories(root_ / "new" / "layer" / "1");
      fs::remove_all(root_ / "new");
    }
  });
  for (int i = 0; i < 500; ++i) {
    const auto names = ListLayerNames(root_.string());
    EXPECT_EQ(names.status(), absl::OkStatus());
    EXPECT_THAT(names.value_or(std::vector<std::string>()), ElementsAre("demo"));
  }
  is_over = true;
  changing.join();
}

TEST_F(LayerDirectoryTest, AFolderThatMayNotBeReadIsAnErrorThatNamesIt) {
  fs::create_directories(root_ / "locked");
  fs::permissions(root_ / "locked", fs::perms::none);
  fs::permissions(folder_, fs::perms::all);
  // Nobody may read everything: where this test is root, it looks with another user's eyes.
  constexpr uid_t kNobody = 65534;
  const auto before = static_cast<uid_t>(geteuid() == 0 ? setfsuid(kNobody) : setfsuid(geteuid()));
  const absl::Status status = ListLayerNames(root_.string()).status();
  setfsuid(before);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("layers/locked: Permission denied"));
  fs::permissions(root_ / "locked", fs::perms::owner_all);
}

TEST_F(LayerDirectoryTest, ADirectoryThatCannotBeReadIsAnError) {
  EXPECT_TRUE(absl::IsFailedPrecondition(ListLayerNames((folder_ / "nowhere").string()).status()));
  const absl::Status missing = FindLayerFolder((folder_ / "nowhere").string(), "a", 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing));
  EXPECT_THAT(std::string(missing.message()), Not(HasSubstr("nowhere"))) << "clients are told";
  fs::create_directories(folder_ / "bare");
  EXPECT_THAT(*ListLayerNames((folder_ / "bare").string()), IsEmpty());
}

}  // namespace
}  // namespace triad
