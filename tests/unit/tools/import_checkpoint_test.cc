// Checkpoints on disk: one file, shards with an index, and what may be wrong with them.
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/import_fixture.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ImportCheckpointTest : public ImportTest {
 protected:
  ImportCheckpointTest() {
    config_ = LlamaConfig();
    AddLlamaLayer("model.layers.0.");
  }

  // Writes an index that says where one tensor is.
  void SaveIndex(const nlohmann::json& shard) {
    SaveFile("model.safetensors.index.json",
             nlohmann::json{{"weight_map", {{"model.layers.0.self_attn.q_proj.weight", shard}}}}.dump());
  }
};

TEST_F(ImportCheckpointTest, ReadsTensorsFromTheirShards) {
  SaveShards();
  ASSERT_EQ(Import(), kExitOk) << err_;
  ExpectWeights(
      "m/0/1", "model.layers.0.",
      {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight"});
}

TEST_F(ImportCheckpointTest, FollowsLinksAsDownloadCachesMakeThem) {
  Save();
  std::filesystem::rename(checkpoint_ / "model.safetensors", root_ / "blob");
  std::filesystem::create_symlink(root_ / "blob", checkpoint_ / "model.safetensors");
  EXPECT_EQ(Import(), kExitOk) << err_;
}

TEST_F(ImportCheckpointTest, RefusesShardsOutsideTheFolder) {
  SaveShards();
  const std::vector<nlohmann::json> names = {"../secret.safetensors",
                                             "/etc/secret.safetensors",
                                             "a/../../secret.safetensors",
                                             "sub/a.safetensors",
                                             "passwords.txt",
                                             "",
                                             nlohmann::json::array(),
                                             nullptr,
                                             std::string("a\0/../b.safetensors", 19)};
  for (const nlohmann::json& name : names) {
    SaveIndex(name);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("'model.layers.0.self_attn.q_proj.weight': "),
                                 HasSubstr("is not the name of a .safetensors file in the same folder")));
  }
}

TEST_F(ImportCheckpointTest, RefusesAnIndexThatIsWrong) {
  SaveShards();
  SaveIndex("model-1.safetensors");  // which holds another
  EXPECT_THAT(Refusal(), HasSubstr("'model.layers.0.self_attn.q_proj.weight' is not in model-1.safetensors"));
  SaveIndex("model-9.safetensors");
  EXPECT_THAT(Refusal(), HasSubstr("model-9.safetensors: No such file"));
  SaveFile("model.safetensors.index.json", "{\"weight_map\": []}");
  EXPECT_THAT(Refusal(), HasSubstr("weight_map is not an object"));
  SaveFile("model.safetensors.index.json", "{\"weight_map\": ");
  EXPECT_THAT(Refusal(), HasSubstr("model.safetensors.index.json: not a JSON object"));
}

TEST_F(ImportCheckpointTest, RefusesATensorThatIsInTwoShards) {
  SaveShards();
  std::filesystem::copy_file(checkpoint_ / "model-0.safetensors", checkpoint_ / "copy.safetensors");
  const nlohmann::json map = {{"model.layers.0.mlp.up_proj.weight", "copy.safetensors"},
                              {"model.layers.0.self_attn.k_proj.weight", "model-0.safetensors"}};
  SaveFile("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_THAT(Refusal(), HasSubstr("is in copy.safetensors and again in model-0.safetensors"));
}

TEST_F(ImportCheckpointTest, SaysWhatIsMissing) {
  EXPECT_THAT(Refusal(), HasSubstr("config.json: No such file"));
  SaveConfig();
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("model.safetensors.index.json: No such file"),
                               HasSubstr("nor is there model.safetensors")));
}

TEST_F(ImportCheckpointTest, RefusesFilesThatAreTornOrHostile) {
  Save();
  std::filesystem::resize_file(checkpoint_ / "model.safetensors", 100);
  EXPECT_THAT(Refusal(), HasSubstr("model.safetensors: "));
  for (const std::string config : {"", "[]", "{", "{\"hidden_size\": Infinity}", "\xff\xfe"}) {
    SaveFile("config.json", config);
    EXPECT_THAT(Refusal(), HasSubstr("config.json: not a JSON object")) << config;
  }
  SaveFile("config.json", std::string(1 << 20, '['));  // deeper than any stack
  EXPECT_THAT(Refusal(), HasSubstr("config.json: not a JSON object"));
}

}  // namespace
}  // namespace triad::tools
