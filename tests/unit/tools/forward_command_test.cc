#include "client/tools/forward_command.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/tensor/npy_file.h"
#include "core/tensor/safetensors_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_path.h"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes zeros as .npy and returns the path.
std::string Save(const std::string& name, DType dtype, Shape shape) {
  EXPECT_TRUE(WriteNpy(TempPath(name), Tensor::Zeros(dtype, std::move(shape))->view()).ok());
  return TempPath(name);
}

// Hidden states [1, 3, 8] for the layer demo, as flags.
std::vector<std::string> ForwardWith(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"forward", "--layer", "demo", "--input",
                                        Save("input.npy", DType::kF32, {1, 3, 8})};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(ForwardCommandTest, SendsTheHiddenStatesAndDefaultsOfTheContract) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(ForwardWith({})), kExitOk) << tool.err.str();
  ASSERT_EQ(tool.connection->forward_requests.size(), 1u);
  const client::ForwardRequest& request = tool.connection->forward_requests[0];
  EXPECT_EQ(request.layer, "demo");
  EXPECT_THAT(request.input.shape, ElementsAre(1, 3, 8));
  EXPECT_EQ(request.layout, client::Layout::kTokensHeads);
  EXPECT_EQ(request.priority, client::Priority::kNormal);
  EXPECT_FALSE(request.version || request.lengths || request.context || request.context_lengths || request.keep ||
               request.bias || request.position_offsets || request.return_lse || request.return_weights);
}

TEST(ForwardCommandTest, EveryOptionHasAFlag) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(ForwardWith({"--layer-version",
                                  "7",
                                  "--layout",
                                  "packed",
                                  "--lengths",
                                  "2,1",
                                  "--context",
                                  Save("context.npy", DType::kF32, {1, 5, 4}),
                                  "--context-lengths",
                                  "4,1",
                                  "--keep",
                                  Save("keep.npy", DType::kBool, {1, 1, 1, 5}),
                                  "--bias",
                                  Save("bias.npy", DType::kF16, {1, 1, 3, 5}),
                                  "--position-offsets",
                                  "0,9",
                                  "--priority",
                                  "low",
                                  "--return-lse",
                                  "--return-weights"})),
            kExitOk)
      << tool.err.str();
  ASSERT_EQ(tool.connection->forward_requests.size(), 1u);
  const client::ForwardRequest& request = tool.connection->forward_requests[0];
  EXPECT_EQ(request.version, 7);
  EXPECT_EQ(request.layout, client::Layout::kPacked);
  EXPECT_EQ(request.lengths, std::vector<int64_t>({2, 1}));
  EXPECT_THAT(request.context->shape, ElementsAre(1, 5, 4));
  EXPECT_EQ(request.context_lengths, std::vector<int64_t>({4, 1}));
  EXPECT_EQ(request.keep->dtype, client::DataType::kBool);
  EXPECT_EQ(request.bias->dtype, client::DataType::kFloat16);
  EXPECT_EQ(request.position_offsets, std::vector<int64_t>({0, 9}));
  EXPECT_EQ(request.priority, client::Priority::kLow);
  EXPECT_TRUE(request.return_lse && request.return_weights);
}

TEST(ForwardCommandTest, ConvertsInputAndContextAlike) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(ForwardWith({"--dtype", "bf16", "--context", Save("context.npy", DType::kF16, {1, 5, 4})})),
            kExitOk)
      << tool.err.str();
  EXPECT_EQ(tool.connection->forward_requests.at(0).input.dtype, client::DataType::kBfloat16);
  EXPECT_EQ(tool.connection->forward_requests.at(0).context->dtype, client::DataType::kBfloat16);
}

TEST(ForwardCommandTest, TakesEverythingFromOneSafetensorsFile) {
  const Tensor hidden = *Tensor::Zeros(DType::kBf16, {1, 3, 8});
  const Tensor keep = *Tensor::Zeros(DType::kBool, {1, 1, 1, 3});
  ASSERT_TRUE(WriteSafetensors(TempPath("in.safetensors"), {{"input", hidden.view()}, {"keep", keep.view()}}).ok());
  ToolRun tool;
  EXPECT_EQ(tool.Run({"forward", "--layer", "demo", "--input", TempPath("in.safetensors")}), kExitOk) << tool.err.str();
  EXPECT_EQ(tool.connection->forward_requests.at(0).input.dtype, client::DataType::kBfloat16);
  EXPECT_TRUE(tool.connection->forward_requests.at(0).keep.has_value());
}

TEST(ForwardCommandTest, RefusesWhatItCannotSendAsUsage) {
  const Tensor tensor = *Tensor::Zeros(DType::kF32, {1, 3, 8});
  ASSERT_TRUE(WriteSafetensors(TempPath("query.safetensors"), {{"query", tensor.view()}}).ok());
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{"forward", "--input", TempPath("input.npy")}, "--layer"},
      {{"forward", "--layer", "demo"}, "--input"},
      {{"forward", "--layer", "demo", "--input", TempPath("none.npy")}, "none.npy"},
      {{"forward", "--layer", "demo", "--input", TempPath("query.safetensors")}, "'query' is none of input, context"},
      {ForwardWith({"--layout", "heads_tokens"}), "--layout"},
  };
  for (const auto& [line, reason] : lines) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage);
    EXPECT_THAT(tool.err.str(), HasSubstr(reason));
    EXPECT_TRUE(tool.connection->forward_requests.empty());
  }
}

TEST(ForwardCommandTest, WritesTheAnswerAndPrintsWhoSharedIt) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(ForwardWith({"--output", TempPath("out.npy"), "--weights", TempPath("map.npy")})), kExitOk)
      << tool.err.str();
  EXPECT_EQ(ReadNpy(TempPath("out.npy"))->shape(), Shape({1, 3, 8}));
  EXPECT_EQ(ReadNpy(TempPath("map.npy"))->shape(), Shape({1, 8, 3, 3}));
  EXPECT_THAT(tool.out.str(), AllOf(HasSubstr("output   FLOAT32 [1, 3, 8]"),
                                    HasSubstr("layer    version 1  projections shared by 3 requests, 21 tokens\n")));
}

TEST(ForwardCommandTest, PrintsJsonForMachines) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(ForwardWith({"--json", "--lse", TempPath("l.npy")})), kExitOk);
  const auto document = nlohmann::json::parse(tool.out.str());
  EXPECT_EQ(document["lse"]["shape"], nlohmann::json({1, 8, 3}));
  EXPECT_EQ(document["layer_version"], 1);
}

TEST(ForwardCommandTest, AFailedCallExitsWith1) {
  ToolRun tool;
  tool.connection->failure = absl::NotFoundError("layer demo is not loaded");
  EXPECT_EQ(tool.Run(ForwardWith({})), kExitFailed);
  EXPECT_THAT(tool.err.str(), HasSubstr("NOT_FOUND: layer demo is not loaded"));
}

}  // namespace
}  // namespace triad::tools
