#include "client/tools/layers_command.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LayersCommandTest : public ::testing::Test {
 protected:
  LayersCommandTest() {
    tool_.connection->layer = {.name = "minilm/0",
                               .version = 3,
                               .model_dim = 384,
                               .context_dim = 384,
                               .output_dim = 384,
                               .heads = 12,
                               .kv_heads = 4,
                               .qk_head_dim = 32,
                               .v_head_dim = 64,
                               .weights_bytes = 3 << 20};
  }

  ToolRun tool_;
};

TEST_F(LayersCommandTest, ListsALinePerLayer) {
  EXPECT_EQ(tool_.Run({"layers", "list"}), kExitOk) << tool_.err.str();
  EXPECT_EQ(tool_.connection->asked_layer.name, "");
  EXPECT_EQ(tool_.out.str(),
            "name                     version  model_dim output_dim     heads  head_dim       MiB\n"
            "minilm/0                       3        384        384      12/4     32/64       3.0\n");
}

TEST_F(LayersCommandTest, ListsOneLayerAsJson) {
  EXPECT_EQ(tool_.Run({"layers", "list", "minilm/0", "--json"}), kExitOk);
  EXPECT_EQ(tool_.connection->asked_layer.name, "minilm/0");
  const auto document = nlohmann::json::parse(tool_.out.str());
  ASSERT_EQ(document["layers"].size(), 1u);
  EXPECT_EQ(document["layers"][0]["name"], "minilm/0");
  EXPECT_EQ(document["layers"][0].size(), 13u);
}

TEST_F(LayersCommandTest, GetAndLoadShowTheLayer) {
  for (const std::string command : {"get", "load"}) {
    EXPECT_EQ(tool_.Run({"layers", command, "minilm/0", "--layer-version", "3"}), kExitOk) << tool_.err.str();
    EXPECT_EQ(tool_.connection->asked_about_layer, command);
    EXPECT_EQ(tool_.connection->asked_layer.name, "minilm/0");
    EXPECT_EQ(tool_.connection->asked_layer.version, 3);
    EXPECT_THAT(tool_.out.str(),
                AllOf(HasSubstr("name                      minilm/0\n"), HasSubstr("kv_heads                  4\n")));
  }
}

TEST_F(LayersCommandTest, WithoutAVersionTheServerChooses) {
  EXPECT_EQ(tool_.Run({"layers", "load", "minilm/0", "--json"}), kExitOk);
  EXPECT_FALSE(tool_.connection->asked_layer.version.has_value());
  EXPECT_EQ(nlohmann::json::parse(tool_.out.str())["version"], 3);
}

TEST_F(LayersCommandTest, UnloadNamesWhatIsGone) {
  EXPECT_EQ(tool_.Run({"layers", "unload", "minilm/0", "--layer-version", "2"}), kExitOk) << tool_.err.str();
  EXPECT_EQ(tool_.connection->asked_layer.version, 2);
  EXPECT_EQ(tool_.out.str(), "unloaded minilm/0 version 2\n");
}

TEST_F(LayersCommandTest, ARefusalExitsWith1) {
  tool_.connection->failure = absl::PermissionDeniedError("needs --allow_layer_admin");
  EXPECT_EQ(tool_.Run({"layers", "load", "minilm/0"}), kExitFailed);
  EXPECT_THAT(tool_.err.str(), HasSubstr("PERMISSION_DENIED: needs --allow_layer_admin"));
}

TEST_F(LayersCommandTest, WhatIsMissingIsAUsageError) {
  const std::vector<std::vector<std::string>> lines = {
      {"layers"}, {"layers", "get"}, {"layers", "load"}, {"layers", "unload", "minilm/0"}, {"layers", "remove"}};
  for (const auto& line : lines) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
    EXPECT_FALSE(tool.target.has_value()) << "nothing was sent";
  }
}

}  // namespace
}  // namespace triad::tools
