#include "tests/unit/tools/import_fixture.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/tools/import/import_command.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace triad::tools {

ImportTest::ImportTest() {
  std::string pattern = std::filesystem::temp_directory_path() / "triad-import-XXXXXX";
  root_ = mkdtemp(pattern.data());
  checkpoint_ = root_ / "m";
  layer_dir_ = root_ / "layers";
  std::filesystem::create_directory(checkpoint_);
}

ImportTest::~ImportTest() { std::filesystem::remove_all(root_); }

void ImportTest::Add(const std::string& name, Shape shape, DType dtype) {
  absl::StatusOr<Tensor> tensor = Tensor::Zeros(dtype, std::move(shape));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  for (int64_t i = 0; i < tensor->element_count(); ++i) {
    const auto value = static_cast<float>(tensors_.size() * 1000) + static_cast<float>(i);
    StoreElement(tensor->data() + i * ByteSize(dtype), dtype, value / 512);
  }
  tensors_[name] = *std::move(tensor);
}

void ImportTest::AddLinear(const std::string& name, int64_t outputs, int64_t inputs, DType dtype) {
  Add(name + ".weight", {outputs, inputs}, dtype);
  Add(name + ".bias", {outputs}, dtype);
}

void ImportTest::AddBertLayer(const std::string& prefix) {
  for (const char* name : {"attention.self.query", "attention.self.key", "attention.self.value",
                           "attention.output.dense", "output.dense"}) {
    AddLinear(prefix + name, 8, 8);
  }
  Add(prefix + "attention.output.LayerNorm.weight", {8});
  Add(prefix + "attention.output.LayerNorm.bias", {8});
}

void ImportTest::AddLlamaLayer(const std::string& prefix, DType dtype) {
  Add(prefix + "self_attn.q_proj.weight", {16, 8}, dtype);
  Add(prefix + "self_attn.k_proj.weight", {8, 8}, dtype);
  Add(prefix + "self_attn.v_proj.weight", {8, 8}, dtype);
  Add(prefix + "self_attn.o_proj.weight", {8, 16}, dtype);
  Add(prefix + "mlp.up_proj.weight", {24, 8}, dtype);
}

void ImportTest::SaveFile(const std::string& name, const std::string& text) {
  std::ofstream(checkpoint_ / name, std::ios::binary) << text;
}

void ImportTest::SaveConfig() { SaveFile("config.json", config_.dump()); }

void ImportTest::Save() {
  SaveConfig();
  std::map<std::string, TensorView> views;
  for (const auto& [name, tensor] : tensors_) views[name] = tensor.view();
  const absl::Status status = WriteSafetensors(checkpoint_ / "model.safetensors", views);
  ASSERT_TRUE(status.ok()) << status;
}

void ImportTest::SaveShards() {
  SaveConfig();
  nlohmann::json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", nlohmann::json::object()}};
  for (const auto& [name, tensor] : tensors_) {
    const std::string shard = absl::StrCat("model-", index["weight_map"].size(), ".safetensors");
    const absl::Status status = WriteSafetensors(checkpoint_ / shard, {{name, tensor.view()}});
    ASSERT_TRUE(status.ok()) << status;
    index["weight_map"][name] = shard;
  }
  SaveFile("model.safetensors.index.json", index.dump());
}

int ImportTest::Import(const std::vector<std::string>& flags) {
  std::vector<std::string> line = {"layers", "import", "--from", checkpoint_, "--to", layer_dir_};
  line.insert(line.end(), flags.begin(), flags.end());
  std::ostringstream out, err;
  const int exit_code = RunTriad(line, {.out = out, .err = err, .show_progress = false, .connect = nullptr});
  out_ = out.str();
  err_ = err.str();
  return exit_code;
}

std::string ImportTest::Refusal(const std::vector<std::string>& flags) {
  EXPECT_EQ(Import(flags), kExitUsage) << err_;
  EXPECT_EQ(out_, "");
  EXPECT_FALSE(std::filesystem::exists(layer_dir_));
  return err_;
}

v1::LayerSpec ImportTest::Spec(const std::string& layer) const {
  std::ifstream file(folder(layer) / "layer.textproto");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  v1::LayerSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

SafetensorsFile ImportTest::Weights(const std::string& layer) const {
  return SafetensorsFile::Open(folder(layer) / "weights.safetensors").value();
}

void ImportTest::ExpectWeights(const std::string& layer, const std::string& prefix,
                               const std::vector<std::string>& names) const {
  const SafetensorsFile file = Weights(layer);
  EXPECT_THAT(file.view().names(), ::testing::UnorderedElementsAreArray(names));
  for (const std::string& name : names) {
    const absl::StatusOr<TensorView> found = file.view().Find(name);
    ASSERT_TRUE(found.ok()) << found.status();
    const Tensor& original = tensors_.at(prefix + name);
    EXPECT_EQ(found->dtype, original.dtype()) << name;
    EXPECT_EQ(found->shape, original.shape()) << name;
    EXPECT_EQ(std::memcmp(found->data, original.data(), static_cast<size_t>(original.byte_size())), 0) << name;
  }
}

nlohmann::json BertConfig() {
  return {{"model_type", "bert"}, {"hidden_size", 8}, {"num_attention_heads", 2}, {"num_hidden_layers", 1}};
}

nlohmann::json LlamaConfig() {
  return {{"model_type", "llama"}, {"hidden_size", 8},       {"num_attention_heads", 4},     {"num_key_value_heads", 2},
          {"head_dim", 4},         {"num_hidden_layers", 1}, {"max_position_embeddings", 64}};
}

nlohmann::json Gpt2Config() { return {{"model_type", "gpt2"}, {"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}}; }

}  // namespace triad::tools
