// What `triad layers import` does not understand it names, and writes nothing.
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

using ImportRefusalsTest = ImportTest;

struct FieldCase {
  std::string field;
  nlohmann::json value;
  std::string message;
};

TEST_F(ImportRefusalsTest, NamesTheFieldTheRuleAndTheValue) {
  const std::vector<FieldCase> cases = {
      {"model_type", "mamba", "model_type must be one of bert, camembert, deit"},
      {"model_type", nullptr, "model_type is required; was unset"},
      {"position_embedding_type", "relative_key", "position_embedding_type must be absolute; was \"relative_key\""},
      {"is_decoder", true, "is_decoder is not supported; was true"},
      {"add_cross_attention", true, "add_cross_attention is not supported; was true"},
      {"quantization_config", {{"bits", 4}}, "quantization_config is not supported; was {\"bits\":4}"},
      {"hidden_size", nullptr, "hidden_size is required"},
      {"hidden_size", 70000, "hidden_size must be at most 65536; was 70000"},
      {"hidden_size", 8.0, "hidden_size must be an integer from 1 to 1073741824; was 8.0"},
      {"hidden_size", -8, "hidden_size must be an integer"},
      {"hidden_size", 1e300, "hidden_size must be an integer"},
      {"num_attention_heads", 3, "num_attention_heads must divide hidden_size (8); was 3"},
      {"num_attention_heads", 0, "num_attention_heads must be an integer"},
      {"num_hidden_layers", "six", "num_hidden_layers must be an integer from 1 to 1073741824; was \"six\""},
  };
  for (const FieldCase& c : cases) {
    config_ = BertConfig();
    AddBertLayer("encoder.layer.0.");
    config_[c.field] = c.value;
    Save();
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("config.json: "), HasSubstr(c.message)));
  }
}

TEST_F(ImportRefusalsTest, NamesFieldsOfALlama) {
  const std::vector<FieldCase> cases = {
      {"sliding_window", 32, "sliding_window means nothing in a llama; in a mistral it does; was 32"},
      {"num_key_value_heads", 3, "num_key_value_heads must divide num_attention_heads (4); was 3"},
      {"head_dim", 3, "heads of even width; was 3"},
      {"head_dim", 1 << 20, "num_attention_heads times the width of a head (1048576) must be at most 65536"},
      {"rope_scaling", {{"rope_type", "longrope"}}, "rope_scaling: rope_type must be"},
      {"layer_types", {"chunked_attention"}, "layer_types must have full_attention or sliding_attention for layer 0"},
      {"layer_types", nlohmann::json::array(), "layer_types must have"},
      {"attention_bias", "yes", "attention_bias must be true or false; was \"yes\""},
      {"attn_logit_softcapping", 50.0, "attn_logit_softcapping is not supported; was 50.0"},
  };
  for (const FieldCase& c : cases) {
    config_ = LlamaConfig();
    AddLlamaLayer("model.layers.0.");
    config_[c.field] = c.value;
    Save();
    EXPECT_THAT(Refusal(), HasSubstr(c.message));
  }
}

TEST_F(ImportRefusalsTest, DoesNotGuessWhatOthersHaveDefaultsFor) {
  config_ = LlamaConfig();
  config_["model_type"] = "mistral";
  config_.erase("num_key_value_heads");
  AddLlamaLayer("model.layers.0.");
  Save();
  EXPECT_THAT(Refusal(), HasSubstr("num_key_value_heads is required; was unset"));
}

TEST_F(ImportRefusalsTest, NamesTensorsOfTheAttentionThatItDoesNotKnow) {
  for (const std::string name : {"q_norm.weight", "k_norm.weight", "q_proj.bias", "q_proj.lora_A.weight", "sinks"}) {
    tensors_.clear();
    config_ = LlamaConfig();
    AddLlamaLayer("model.layers.0.");
    Add("model.layers.0.self_attn." + name, {4});
    Save();
    EXPECT_THAT(Refusal(), HasSubstr("'model.layers.0.self_attn." + name + "' is not understood"));
  }
}

TEST_F(ImportRefusalsTest, NamesTensorsOfBertThatItDoesNotKnow) {
  for (const std::string name : {"attention.self.distance_embedding.weight", "crossattention.self.query.weight"}) {
    tensors_.clear();
    config_ = BertConfig();
    AddBertLayer("encoder.layer.0.");
    Add("encoder.layer.0." + name, {4});
    Save();
    EXPECT_THAT(Refusal(), HasSubstr("'encoder.layer.0." + name + "' is not understood"));
  }
}

TEST_F(ImportRefusalsTest, NamesTensorsThatAreMissing) {
  config_ = BertConfig();
  AddBertLayer("bert.encoder.layer.0.");
  tensors_.erase("bert.encoder.layer.0.attention.self.key.bias");
  Save();
  EXPECT_THAT(Refusal(), HasSubstr("no tensor 'bert.encoder.layer.0.attention.self.key.bias'"));
  config_["num_hidden_layers"] = 2;
  AddBertLayer("bert.encoder.layer.0.");
  Save();
  EXPECT_THAT(Refusal(),
              HasSubstr("no tensor 'encoder.layer.1.attention.output.dense.weight', with none of these before "
                        "it: '', 'bert.'"));
}

TEST_F(ImportRefusalsTest, NamesTensorsOfAnotherShapeOrType) {
  config_ = LlamaConfig();
  AddLlamaLayer("layers.0.");
  Add("layers.0.self_attn.k_proj.weight", {16, 8});  // not grouped, against config.json
  Save();
  EXPECT_THAT(Refusal(),
              HasSubstr("'layers.0.self_attn.k_proj.weight': shape must be [8, 8] by config.json; was [16, 8]"));
  AddLlamaLayer("layers.0.", DType::kF32);
  tensors_["layers.0.self_attn.k_proj.weight"] = *Tensor::Zeros(DType::kBool, {8, 8});
  Save();
  EXPECT_THAT(Refusal(), HasSubstr("'layers.0.self_attn.k_proj.weight': type must be F32, BF16 or F16; was BOOL"));
}

TEST_F(ImportRefusalsTest, DoesNotChooseBetweenTwoModels) {
  config_ = BertConfig();
  AddBertLayer("encoder.layer.0.");
  AddBertLayer("bert.encoder.layer.0.");
  Save();
  EXPECT_THAT(Refusal(), HasSubstr("two models in one"));
}

TEST_F(ImportRefusalsTest, WritesNoLayerWhenOneIsNotUnderstood) {
  config_ = LlamaConfig();
  config_["num_hidden_layers"] = 2;
  AddLlamaLayer("layers.0.");
  AddLlamaLayer("layers.1.");
  Add("layers.1.self_attn.q_norm.weight", {4});
  Save();
  EXPECT_THAT(Refusal({"--all"}), HasSubstr("'layers.1.self_attn.q_norm.weight' is not understood"));
  EXPECT_EQ(Import({"--layer", "0"}), kExitOk) << err_;
}

TEST_F(ImportRefusalsTest, FlagsThatCannotBothHaveAnEffectAreRefused) {
  config_ = BertConfig();
  AddBertLayer("bert.encoder.layer.0.");
  Save();
  EXPECT_THAT(Refusal({"--list", "--force"}), HasSubstr("--force does not go with --list"));
  EXPECT_THAT(Refusal({"--layer", "0", "--all"}), HasSubstr("--all does not go with --layer"));
}

}  // namespace
}  // namespace triad::tools
