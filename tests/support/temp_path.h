// Files that a test writes.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace triad {

// `name` in a folder of this process alone, which goes with it: ctest runs the tests of one binary side by side.
inline std::string TempPath(const std::string& name) {
  struct Folder {
    Folder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path = ::testing::TempDir() + "/triad-XXXXXX";
  };
  static const Folder folder;
  return folder.path + "/" + name;
}

}  // namespace triad
