// A small checkpoint on disk, in any naming, and `triad layers import` of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "client/tools/tool.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "triad/v1/layer_spec.pb.h"

namespace triad::tools {

class ImportTest : public ::testing::Test {
 protected:
  ImportTest();
  ~ImportTest() override;

  // A tensor of the checkpoint, whose bytes tell it from the others.
  void Add(const std::string& name, Shape shape, DType dtype = DType::kF32);
  // "<name>.weight" [outputs, inputs] and "<name>.bias" [outputs].
  void AddLinear(const std::string& name, int64_t outputs, int64_t inputs, DType dtype = DType::kF32);
  void AddBertLayer(const std::string& prefix);                               // 8 wide, such as "bert.encoder.layer.0."
  void AddLlamaLayer(const std::string& prefix, DType dtype = DType::kBf16);  // 8 wide, 4 heads of 4 over 2

  // Writes what was added: config.json and model.safetensors, or shards of one tensor each with their index.
  void Save();
  void SaveShards();
  void SaveConfig();
  void SaveFile(const std::string& name, const std::string& text);

  // Runs `triad layers import --from <checkpoint> --to <layers>` with these flags too; out and err are replaced.
  int Import(const std::vector<std::string>& flags = {});
  // Expects exit code kExitUsage and that nothing was written; gives what was said.
  std::string Refusal(const std::vector<std::string>& flags = {});

  // What was written, by the name of the layer and its version: "m/0/1".
  std::filesystem::path folder(const std::string& layer) const { return layer_dir_ / layer; }
  v1::LayerSpec Spec(const std::string& layer) const;
  SafetensorsFile Weights(const std::string& layer) const;
  // Expects weights.safetensors to hold exactly `names`, each with the type, shape and bytes of prefix + name.
  void ExpectWeights(const std::string& layer, const std::string& prefix, const std::vector<std::string>& names) const;

  nlohmann::json config_;
  std::map<std::string, Tensor> tensors_;
  std::string out_, err_;
  std::filesystem::path root_, checkpoint_, layer_dir_;
};

nlohmann::json BertConfig();   // 1 layer, 8 wide, 2 heads
nlohmann::json LlamaConfig();  // 1 layer, 8 wide, 4 heads of 4 over 2
nlohmann::json Gpt2Config();   // 1 layer, 8 wide, 2 heads

}  // namespace triad::tools
