// Where `triad layers import` writes, and what it replaces.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/tools/import/layer_text.h"
#include "client/tools/import/write_layer.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/layer_name.h"
#include "tests/unit/tools/import_fixture.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ImportWriteTest : public ImportTest {
 protected:
  ImportWriteTest() {
    config_ = BertConfig();
    config_["num_hidden_layers"] = 3;
    for (const char* layer : {"0", "1", "2"}) AddBertLayer(std::string("encoder.layer.") + layer + ".");
    Save();
  }

  // Whatever is in the folder of a layer, files and folders alike.
  std::vector<std::string> Entries(const std::string& layer) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder(layer)))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(ImportWriteTest, EveryLayerIsTheDefault) {
  ASSERT_EQ(Import(), kExitOk) << err_;
  EXPECT_THAT(Entries("m"), ::testing::UnorderedElementsAre("0", "1", "2"));
  EXPECT_THAT(Entries("m/2"), ::testing::UnorderedElementsAre("1"));
  EXPECT_THAT(Entries("m/2/1"), ::testing::UnorderedElementsAre("layer.textproto", "weights.safetensors"));
  ExpectWeights("m/2/1", "encoder.layer.2.",
                {"attention.self.query.weight", "attention.self.query.bias", "attention.self.key.weight",
                 "attention.self.key.bias", "attention.self.value.weight", "attention.self.value.bias",
                 "attention.output.dense.weight", "attention.output.dense.bias"});
}

TEST_F(ImportWriteTest, OneLayerUnderANameAndVersionOfChoice) {
  ASSERT_EQ(Import({"--layer", "1", "--name", "my/model-1.5", "--version", "7", "--compute", "bf16"}), kExitOk) << err_;
  EXPECT_THAT(Entries(""), ::testing::UnorderedElementsAre("my"));
  EXPECT_THAT(Entries("my/model-1.5"), ::testing::UnorderedElementsAre("1"));
  EXPECT_EQ(Spec("my/model-1.5/1/7").compute(), v1::BFLOAT16);
  ASSERT_EQ(Import({"--layer", "1"}), kExitOk) << err_;
  EXPECT_EQ(Spec("m/1/1").compute(), v1::DATA_TYPE_UNSPECIFIED);
}

TEST_F(ImportWriteTest, ReplacesAVersionOnlyWhenForced) {
  ASSERT_EQ(Import({"--layer", "1"}), kExitOk) << err_;
  std::ofstream(folder("m/1/1") / "notes.txt") << "mine";
  EXPECT_EQ(Import({"--layer", "1"}), kExitUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("m/1/1: there is a layer already"), HasSubstr("--force")));
  EXPECT_TRUE(std::filesystem::exists(folder("m/1/1") / "notes.txt"));
  EXPECT_EQ(Import({"--all"}), kExitUsage);  // layer 0 is free, but not all are
  EXPECT_FALSE(std::filesystem::exists(folder("m/0")));
  EXPECT_EQ(Import({"--layer", "1", "--compute", "bf16", "--force"}), kExitOk) << err_;
  EXPECT_EQ(Spec("m/1/1").compute(), v1::BFLOAT16);
  EXPECT_THAT(Entries("m/1/1"), ::testing::UnorderedElementsAre("layer.textproto", "weights.safetensors"));
  EXPECT_THAT(Entries("m/1"), ::testing::UnorderedElementsAre("1"));  // nothing is left of the old one
}

TEST_F(ImportWriteTest, AFileInPlaceOfTheFolderIsAFaultOfItsFlag) {
  std::ofstream{layer_dir_} << "mine";
  EXPECT_EQ(Import(), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--to must be a folder"));
}

TEST_F(ImportWriteTest, LeavesNothingBehindWhenItCannotWrite) {
  std::filesystem::create_directories(folder("m"));
  std::ofstream(folder("m/1")) << "a file where the layer's folder should be";
  EXPECT_EQ(Import({"--layer", "1"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("m/1"));
  EXPECT_THAT(Entries("m"), ::testing::UnorderedElementsAre("1"));
}

TEST_F(ImportWriteTest, NamesStayInTheLayerDirectory) {
  for (const char* name : {"..", "../x", "a/../b", "/abs", "a//b", "a/", ".hidden", "-x", "a b", "a\nb", "\xc3\xa9"}) {
    EXPECT_THAT(Refusal({"--name", name}), HasSubstr("--name: ")) << name;
    EXPECT_FALSE(CheckLayerName(name).ok()) << name;
  }
  EXPECT_FALSE(CheckLayerName("").ok());
  EXPECT_FALSE(CheckLayerName("a/a/a/a/a/a/a/a/a").ok());
  EXPECT_FALSE(CheckLayerName(std::string(201, 'a')).ok());
  EXPECT_TRUE(CheckLayerName("meta/Llama-3.1-8B_x").ok());
}

// Every string of up to four bytes of each kind, and the limits of length.
TEST(CheckLayerNameTest, WhatIsTakenAServerTakesToo) {
  const std::string bytes("aZ0_.-/ \x80", 9);
  std::vector<std::string> names = {"", std::string(200, 'a'), std::string(201, 'a'), "a/a/a/a/a/a/a/a",
                                    "a/a/a/a/a/a/a/a/a"};
  for (size_t begin = 0; begin < names.size(); ++begin) {
    if (names[begin].size() >= 4) continue;
    for (const char byte : bytes) names.push_back(names[begin] + byte);
  }
  for (const std::string& name : names) {
    if (!CheckLayerName(name).ok()) continue;
    ASSERT_EQ(triad::CheckLayerName("name", name), absl::OkStatus());
  }
  EXPECT_TRUE(CheckLayerName(std::string(200, 'a')).ok());
  EXPECT_TRUE(CheckLayerName("a/a/a/a/a/a/a/a").ok());
}

TEST_F(ImportWriteTest, ACommandLineThatMakesNoSenseWritesNothing) {
  EXPECT_THAT(Refusal({"--layer", "3"}), HasSubstr("--layer must be from 0 to 2; was 3"));
  Refusal({"--layer", "-1"});
  Refusal({"--layer", "0", "--all"});
  Refusal({"--version", "0"});
  Refusal({"--compute", "f16"});
}

TEST_F(ImportWriteTest, ListWritesNothing) {
  ASSERT_EQ(Import({"--list"}), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("m/2  8 wide, 2 heads of 4"));
  EXPECT_FALSE(std::filesystem::exists(layer_dir_));
}

TEST_F(ImportWriteTest, PrintsJson) {
  ASSERT_EQ(Import({"--json"}), kExitOk) << err_;
  const auto document = nlohmann::json::parse(out_);
  ASSERT_EQ(document.size(), 3u);
  EXPECT_EQ(document[2]["name"], "m/2");
  EXPECT_EQ(document[2]["version"], 1);
  EXPECT_EQ(document[2]["weights_bytes"], 4 * (4 * 64 + 4 * 8));
}

TEST(LayerTextTest, NamesAndNumbersAreReadBackAsTheyWere) {
  LayerText layer = {.model_dim = 6, .heads = 3, .kv_heads = 1, .head_dim = 2, .scale = 0.1f};
  layer.rotary = {.dim = 2, .inverse_frequencies = {1.0 / 3}, .attention_factor = 1.1};
  layer.query = {.weight = "q \"quoted\"\n\\ \xc3\xa9", .bias = "b"};
  v1::LayerSpec spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(FormatLayer(layer), &spec)) << FormatLayer(layer);
  EXPECT_EQ(spec.scale(), 0.1f);
  EXPECT_EQ(spec.rotary().inverse_frequencies(0), 1.0 / 3);
  EXPECT_EQ(spec.rotary().attention_factor(), 1.1);
  EXPECT_EQ(spec.query().bias(), "b");
  EXPECT_FALSE(spec.rotary().has_theta());
}

}  // namespace
}  // namespace triad::tools
