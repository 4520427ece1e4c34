// Every family of models, imported from a small checkpoint in its naming.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/import_fixture.h"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

using ImportNamingTest = ImportTest;

const std::vector<std::string> kBertTensors = {
    "attention.self.query.weight", "attention.self.query.bias",     "attention.self.key.weight",
    "attention.self.key.bias",     "attention.self.value.weight",   "attention.self.value.bias",
    "attention.output.dense.bias", "attention.output.dense.weight",
};
const std::vector<std::string> kLlamaTensors = {"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                                "self_attn.v_proj.weight", "self_attn.o_proj.weight"};

TEST_F(ImportNamingTest, BertWithAndWithoutItsPrefix) {
  for (const std::string prefix : {"", "bert."}) {
    config_ = BertConfig();
    tensors_.clear();
    AddBertLayer(prefix + "encoder.layer.0.");
    Save();
    ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
    EXPECT_THAT(out_, HasSubstr("m/0  8 wide, 2 heads of 4"));
    ExpectWeights("m/0/1", prefix + "encoder.layer.0.", kBertTensors);
    const v1::LayerSpec spec = Spec("m/0/1");
    EXPECT_EQ(spec.model_dim(), 8);
    EXPECT_EQ(spec.heads(), 2);
    EXPECT_EQ(spec.qk_head_dim(), 4);
    EXPECT_FALSE(spec.causal());
    EXPECT_FALSE(spec.has_rotary());
    EXPECT_FALSE(spec.has_scale());
    EXPECT_NE(spec.weight_order(), v1::IN_OUT);
    EXPECT_EQ(spec.query().weight(), "attention.self.query.weight");
    EXPECT_EQ(spec.value().bias(), "attention.self.value.bias");
    EXPECT_EQ(spec.output().weight(), "attention.output.dense.weight");
  }
}

TEST_F(ImportNamingTest, RobertaIsABertUnderAnotherName) {
  config_ = BertConfig();
  config_["model_type"] = "roberta";
  AddBertLayer("roberta.encoder.layer.0.");
  Save();
  ASSERT_EQ(Import(), kExitOk) << err_;
  ExpectWeights("m/0/1", "roberta.encoder.layer.0.", kBertTensors);
}

TEST_F(ImportNamingTest, Gpt2IsFusedCausalAndInOut) {
  config_ = Gpt2Config();
  for (const std::string prefix : {"h.0.", "transformer.h.0."}) {
    tensors_.clear();
    Add(prefix + "attn.c_attn.weight", {8, 24}, DType::kF16);
    Add(prefix + "attn.c_attn.bias", {24}, DType::kF16);
    Add(prefix + "attn.c_proj.weight", {8, 8}, DType::kF16);
    Add(prefix + "attn.c_proj.bias", {8}, DType::kF16);
    Add(prefix + "attn.bias", {1, 1, 4, 4});  // the causal mask
    Save();
    ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
    ExpectWeights("m/0/1", prefix,
                  {"attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias"});
    const v1::LayerSpec spec = Spec("m/0/1");
    EXPECT_TRUE(spec.causal());
    EXPECT_EQ(spec.weight_order(), v1::IN_OUT);
    EXPECT_EQ(spec.fused().weight(), "attn.c_attn.weight");
    EXPECT_EQ(spec.fused().bias(), "attn.c_attn.bias");
    EXPECT_FALSE(spec.has_query());
    EXPECT_FALSE(spec.has_scale());
  }
}

TEST_F(ImportNamingTest, Gpt2ScalesByTheLayersIndexWhenItsConfigSaysSo) {
  config_ = Gpt2Config();
  config_["n_layer"] = 3;
  config_["scale_attn_by_inverse_layer_idx"] = true;
  for (const std::string prefix : {"h.0.", "h.1.", "h.2."}) {
    Add(prefix + "attn.c_attn.weight", {8, 24});
    Add(prefix + "attn.c_attn.bias", {24});
    Add(prefix + "attn.c_proj.weight", {8, 8});
    Add(prefix + "attn.c_proj.bias", {8});
  }
  Save();
  ASSERT_EQ(Import(), kExitOk) << err_;
  EXPECT_EQ(Spec("m/2/1").scale(), 0.5f / 3);  // 1 / sqrt(4), by the third layer
  config_["scale_attn_weights"] = false;
  SaveConfig();
  ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").scale(), 1);
}

TEST_F(ImportNamingTest, LlamaHasGroupedHeadsAndARotaryEmbedding) {
  config_ = LlamaConfig();
  config_["rope_theta"] = 500000;
  for (const std::string prefix : {"layers.0.", "model.layers.0."}) {
    tensors_.clear();
    AddLlamaLayer(prefix);
    Add(prefix + "self_attn.rotary_emb.inv_freq", {2});  // in old files
    Save();
    ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
    ExpectWeights("m/0/1", prefix, kLlamaTensors);
    const v1::LayerSpec spec = Spec("m/0/1");
    EXPECT_EQ(spec.kv_heads(), 2);
    EXPECT_EQ(spec.qk_head_dim(), 4);
    EXPECT_TRUE(spec.causal());
    EXPECT_FALSE(spec.has_window());
    EXPECT_EQ(spec.rotary().dim(), 4);
    EXPECT_EQ(spec.rotary().pairs(), v1::HALVES);
    EXPECT_EQ(spec.rotary().theta(), 500000);
    EXPECT_EQ(spec.rotary().inverse_frequencies_size(), 0);
    EXPECT_EQ(spec.query().bias(), "");
  }
}

TEST_F(ImportNamingTest, LlamaTakesBiasesWhenItsConfigSaysSo) {
  config_ = LlamaConfig();
  config_["attention_bias"] = true;
  AddLinear("model.layers.0.self_attn.q_proj", 16, 8);
  AddLinear("model.layers.0.self_attn.k_proj", 8, 8);
  AddLinear("model.layers.0.self_attn.v_proj", 8, 8);
  AddLinear("model.layers.0.self_attn.o_proj", 8, 16);
  Save();
  ASSERT_EQ(Import(), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").key().bias(), "self_attn.k_proj.bias");
  EXPECT_EQ(Spec("m/0/1").output().bias(), "self_attn.o_proj.bias");
}

TEST_F(ImportNamingTest, MistralsWindowHasTheQueryItselfInIt) {
  config_ = LlamaConfig();
  config_["model_type"] = "mistral";
  config_["sliding_window"] = 32;
  AddLlamaLayer("model.layers.0.");
  Save();
  ASSERT_EQ(Import(), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").window().left(), 31);
  EXPECT_FALSE(Spec("m/0/1").window().has_right());
  config_["sliding_window"] = nullptr;
  SaveConfig();
  ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
  EXPECT_FALSE(Spec("m/0/1").has_window());
}

TEST_F(ImportNamingTest, Qwen2HasBiasesAndAWindowInItsLaterLayers) {
  config_ = LlamaConfig();
  config_.update({{"model_type", "qwen2"}, {"num_hidden_layers", 2}, {"sliding_window", 16}});
  config_.update({{"use_sliding_window", true}, {"max_window_layers", 1}});
  for (const std::string prefix : {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
    AddLinear(prefix + "q_proj", 16, 8);
    AddLinear(prefix + "k_proj", 8, 8);
    AddLinear(prefix + "v_proj", 8, 8);
    Add(prefix + "o_proj.weight", {8, 16});
  }
  Save();
  ASSERT_EQ(Import(), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").query().bias(), "self_attn.q_proj.bias");
  EXPECT_EQ(Spec("m/0/1").output().bias(), "");
  EXPECT_FALSE(Spec("m/0/1").has_window());
  EXPECT_EQ(Spec("m/1/1").window().left(), 15);
  config_["layer_types"] = {"sliding_attention", "full_attention"};
  SaveConfig();
  ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").window().left(), 15);
  EXPECT_FALSE(Spec("m/1/1").has_window());
}

TEST_F(ImportNamingTest, VitWithAndWithoutBiasesOfItsInputs) {
  config_ = BertConfig();
  config_["model_type"] = "vit";
  for (const std::string prefix : {"encoder.layer.0.", "vit.encoder.layer.0."}) {
    tensors_.clear();
    for (const char* name : {"attention.query", "attention.key", "attention.value", "output.dense"}) {
      AddLinear(prefix + "attention." + name, 8, 8);
    }
    Save();
    ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
    EXPECT_EQ(Spec("m/0/1").key().bias(), "attention.attention.key.bias");
    EXPECT_EQ(Spec("m/0/1").output().bias(), "attention.output.dense.bias");
    EXPECT_FALSE(Spec("m/0/1").causal());
  }
  config_["qkv_bias"] = false;
  for (const char* name : {"query", "key", "value"}) {
    tensors_.erase(std::string("vit.encoder.layer.0.attention.attention.") + name + ".bias");
  }
  Save();
  ASSERT_EQ(Import({"--force"}), kExitOk) << err_;
  EXPECT_EQ(Spec("m/0/1").key().bias(), "");
  EXPECT_EQ(Spec("m/0/1").output().bias(), "attention.output.dense.bias");
}

}  // namespace
}  // namespace triad::tools
