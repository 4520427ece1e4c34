#include "client/tools/attend_command.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/tensor/file_bytes.h"
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

Tensor Counting(DType dtype, Shape shape) {
  Tensor tensor = *Tensor::Zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    StoreElement(tensor.data() + i * ByteSize(dtype), dtype, static_cast<float>(i));
  }
  return tensor;
}

// Queries, keys and values of [1, 2, 2, 4], as flags.
std::vector<std::string> AttendWith(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"attend"};
  for (const char* name : {"query", "key", "value"}) {
    const std::string path = TempPath(absl::StrCat(name, ".npy"));
    EXPECT_TRUE(WriteNpy(path, Counting(DType::kF32, {1, 2, 2, 4}).view()).ok());
    arguments.insert(arguments.end(), {absl::StrCat("--", name), path});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(AttendCommandTest, SendsTheTensorsAndDefaultsOfTheContract) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({})), kExitOk) << tool.err.str();
  ASSERT_EQ(tool.connection->requests.size(), 1u);
  const client::AttendRequest& request = tool.connection->requests[0];
  EXPECT_THAT(request.query.shape, ElementsAre(1, 2, 2, 4));
  EXPECT_EQ(request.query.dtype, client::DataType::kFloat32);
  EXPECT_EQ(request.layout, client::Layout::kTokensHeads);
  EXPECT_FALSE(request.scale || request.window || request.keep || request.bias || request.query_lengths ||
               request.key_lengths || request.causal || request.alibi || request.return_lse || request.return_weights);
  EXPECT_EQ(request.alignment, client::Alignment::kUnspecified);
  EXPECT_EQ(request.priority, client::Priority::kNormal);
}

TEST(AttendCommandTest, EveryOptionHasAFlag) {
  ASSERT_TRUE(WriteNpy(TempPath("bias.npy"), Counting(DType::kF16, {1, 1, 2, 2}).view()).ok());
  ASSERT_TRUE(WriteNpy(TempPath("keep.npy"), Tensor::Zeros(DType::kBool, {1, 1, 1, 2})->view()).ok());
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--scale",
                                 "-0.5",
                                 "--logit-softcap",
                                 "30",
                                 "--causal",
                                 "--alignment",
                                 "bottom_right",
                                 "--window-left",
                                 "3",
                                 "--window-right",
                                 "0",
                                 "--alibi-slopes",
                                 "0.5,0.25",
                                 "--sinks=-inf,2",
                                 "--query-lengths",
                                 "2",
                                 "--key-lengths",
                                 "1",
                                 "--kernel",
                                 "reference",
                                 "--priority",
                                 "low",
                                 "--return-lse",
                                 "--return-weights",
                                 "--alibi",
                                 "--layout",
                                 "heads_tokens",
                                 "--bias",
                                 TempPath("bias.npy"),
                                 "--keep",
                                 TempPath("keep.npy")})),
            kExitOk)
      << tool.err.str();
  ASSERT_EQ(tool.connection->requests.size(), 1u);
  const client::AttendRequest& request = tool.connection->requests[0];
  EXPECT_EQ(request.scale, -0.5f);
  EXPECT_EQ(request.logit_softcap, 30);
  EXPECT_TRUE(request.causal && request.alibi && request.return_lse && request.return_weights);
  EXPECT_EQ(request.alignment, client::Alignment::kBottomRight);
  ASSERT_TRUE(request.window.has_value());
  EXPECT_EQ(request.window->left, 3);
  EXPECT_EQ(request.window->right, 0);
  EXPECT_THAT(request.alibi_slopes, ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(request.sinks, ElementsAre(-INFINITY, 2));
  EXPECT_EQ(request.query_lengths, std::vector<int64_t>({2}));
  EXPECT_EQ(request.key_lengths, std::vector<int64_t>({1}));
  EXPECT_EQ(request.kernel, client::Kernel::kReference);
  EXPECT_EQ(request.priority, client::Priority::kLow);
  EXPECT_EQ(request.layout, client::Layout::kHeadsTokens);
  EXPECT_EQ(request.bias->dtype, client::DataType::kFloat16);
  EXPECT_EQ(request.keep->dtype, client::DataType::kBool);
}

TEST(AttendCommandTest, AnAlignmentOfNothingIsRefused) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--alignment", "top_left"})), kExitUsage);
  EXPECT_THAT(tool.err.str(),
              HasSubstr("--alignment needs --causal, --window-left, --window-right, --alibi or slopes"));
  EXPECT_TRUE(tool.connection->requests.empty());

  const Tensor slopes = Counting(DType::kF32, {2});
  ASSERT_TRUE(WriteSafetensors(TempPath("slopes.safetensors"), {{"alibi_slopes", slopes.view()}}).ok());
  ToolRun with_slopes;
  EXPECT_EQ(with_slopes.Run(AttendWith({"--alignment", "top_left", "--input", TempPath("slopes.safetensors")})),
            kExitOk)
      << with_slopes.err.str();
}

TEST(AttendCommandTest, ConvertsToTheTypeAskedFor) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--dtype", "bf16"})), kExitOk) << tool.err.str();
  EXPECT_EQ(tool.connection->requests.at(0).query.dtype, client::DataType::kBfloat16);
  ASSERT_EQ(tool.connection->sent_query.size(), 32u);
  uint16_t last = 0;
  std::memcpy(&last, tool.connection->sent_query.data() + 30, sizeof(last));
  EXPECT_EQ(last, F32ToBf16(15));
}

// A .npy file of `descr`, of one element of `bytes`.
std::string WriteElement(const std::string& name, const std::string& descr, int bytes) {
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (1, 1, 1, 1), }\n");
  const std::string length = {static_cast<char>(header.size()), 0};
  const std::string path = TempPath(name);
  EXPECT_TRUE(WriteFile(path, {"\x93NUMPY\x01", std::string(1, '\0'), length, header, std::string(bytes, '\0')}).ok());
  return path;
}

TEST(AttendCommandTest, ATensorOfTheWrongTypeIsToldWhatItsInputTakes) {
  const std::string mask = "; keep takes booleans, or bytes (uint8)\n";
  const std::string numbers =
      " takes float32 and float16; --dtype f32 converts doubles and integers, --dtype bf16 takes";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--keep", WriteElement("keep.i8.npy", "<i8", 8)}, "'<i8' would have to be converted" + mask},
      {{"--keep", WriteElement("keep.f4.npy", "<f4", 4)}, "keep.f4.npy: is of type FLOAT32" + mask},
      {{"--keep", WriteElement("keep.c8.npy", "<c8", 8), "--dtype", "f32"}, "'<c8' is not supported" + mask},
      {{"--bias", WriteElement("bias.f8.npy", "<f8", 8)}, "'<f8' would have to be converted; bias" + numbers},
      {{"--bias", WriteElement("bias.b1.npy", "|b1", 1)}, "bias.b1.npy: is of type BOOL; bias" + numbers},
      {{"--bias", WriteElement("bias.c8.npy", "<c8", 8), "--dtype", "f32"}, "'<c8' is not supported; bias" + numbers},
      {{"--bias", WriteElement("bias.V2.npy", "|V2", 2), "--dtype", "f32"},
       "'|V2' may be bfloat16, but the file does not say so; bias" + numbers},
  };
  for (const auto& [more, message] : cases) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(AttendWith(more)), kExitUsage);
    EXPECT_THAT(tool.err.str(), HasSubstr(message));
    EXPECT_TRUE(tool.connection->requests.empty());
  }
  const Tensor numbers_as_mask = Counting(DType::kF32, {1, 1, 1, 2});
  ASSERT_TRUE(WriteSafetensors(TempPath("mask.safetensors"), {{"keep", numbers_as_mask.view()}}).ok());
  ToolRun collection;
  EXPECT_EQ(collection.Run(AttendWith({"--input", TempPath("mask.safetensors")})), kExitUsage);
  EXPECT_THAT(collection.err.str(), HasSubstr("keep: is of type FLOAT32; keep takes BOOL\n"));
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend", "--query", WriteElement("query.i8.npy", "<i8", 8)}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("'<i8' would have to be converted; query" + numbers));
}

TEST(AttendCommandTest, RefusesAConversionThatWouldMakeInfinities) {
  ToolRun tool;
  const auto arguments = AttendWith({"--dtype", "f16"});
  Tensor key = Counting(DType::kF32, {1, 1, 1, 1});
  StoreElement(key.data(), DType::kF32, 1e6f);
  ASSERT_TRUE(WriteNpy(TempPath("key.npy"), key.view()).ok());
  EXPECT_EQ(tool.Run(arguments), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("key: element 0 is 1e+06, past the range of FLOAT16"));
  EXPECT_TRUE(tool.connection->requests.empty());
}

TEST(AttendCommandTest, TakesEverythingFromOneSafetensorsFile) {
  const Tensor qkv = Counting(DType::kBf16, {1, 2, 2, 4});
  const Tensor sinks = Counting(DType::kF32, {2});
  const Tensor keep = *Tensor::Zeros(DType::kBool, {1, 1, 1, 2});
  ASSERT_TRUE(WriteSafetensors(TempPath("in.safetensors"), {{"query", qkv.view()},
                                                            {"key", qkv.view()},
                                                            {"value", qkv.view()},
                                                            {"keep", keep.view()},
                                                            {"sinks", sinks.view()}})
                  .ok());
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend", "--input", TempPath("in.safetensors")}), kExitOk) << tool.err.str();
  const client::AttendRequest& request = tool.connection->requests.at(0);
  EXPECT_EQ(request.query.dtype, client::DataType::kBfloat16);
  EXPECT_TRUE(request.keep.has_value());
  EXPECT_THAT(request.sinks, ElementsAre(0, 1));
}

TEST(AttendCommandTest, RefusesATensorWhoseNameItDoesNotKnow) {
  const Tensor tensor = Counting(DType::kF32, {1, 2, 2, 4});
  ASSERT_TRUE(WriteSafetensors(TempPath("typo.safetensors"), {{"querry", tensor.view()}}).ok());
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend", "--input", TempPath("typo.safetensors")}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("'querry' is none of query, key"));
}

TEST(AttendCommandTest, SaysWhereASafetensorsFileGoes) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend", "--query", "all.safetensors"}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("--query takes a .npy file; give all.safetensors as --input"));
}

TEST(AttendCommandTest, SaysWhichTensorIsMissingAndHowToGiveIt) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend"}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("no query: give --query FILE.npy, or --input"));
}

TEST(AttendCommandTest, WritesEachPartWhereItIsToldTo) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--output", TempPath("out.npy"), "--lse", TempPath("parts.safetensors"), "--weights",
                                 TempPath("parts.safetensors")})),
            kExitOk)
      << tool.err.str();
  EXPECT_EQ(ReadNpy(TempPath("out.npy"))->shape(), Shape({1, 2, 2, 4}));
  const auto parts = SafetensorsFile::Open(TempPath("parts.safetensors"));
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_THAT(parts->view().names(), ElementsAre("lse", "weights"));
}

TEST(AttendCommandTest, PutsTheWholeAnswerIntoOneSafetensorsFile) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--output", TempPath("all.safetensors"), "--return-lse", "--return-weights"})),
            kExitOk);
  EXPECT_THAT(SafetensorsFile::Open(TempPath("all.safetensors"))->view().names(),
              ElementsAre("lse", "output", "weights"));
}

TEST(AttendCommandTest, RefusesPlacesItCannotWriteBeforeItSends) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--output", "out.txt"}, "--output takes a .npy or a .safetensors file; was out.txt"},
      {{"--output", "a.npy", "--lse", "./a.npy"}, "--lse would overwrite the file of --output, a.npy"},
      {{"--output", TempPath("key.npy")}, "--output would overwrite the file of --key"},
      {{"--weights", TempPath("none/w.npy")}, "--weights cannot be written"},
  };
  for (const auto& [more, message] : cases) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(AttendWith(more)), kExitUsage);
    EXPECT_THAT(tool.err.str(), HasSubstr(message));
    EXPECT_TRUE(tool.connection->requests.empty());
  }
  EXPECT_TRUE(ReadNpy(TempPath("key.npy")).ok()) << "it is as it was";
}

TEST(AttendCommandTest, PrintsShapesStatisticsAndTimes) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--return-lse"})), kExitOk);
  EXPECT_THAT(tool.out.str(), AllOf(HasSubstr("output   FLOAT32 [1, 2, 2, 4]  min 0  mean 0  max 0\n"),
                                    HasSubstr("lse      FLOAT32 [1, 2, 2]"),
                                    HasSubstr("server   queue 12us  compute 345us  total 1ms\n")));
}

TEST(AttendCommandTest, PrintsJsonForMachines) {
  ToolRun tool;
  EXPECT_EQ(tool.Run(AttendWith({"--json", "--output", TempPath("out.npy")})), kExitOk);
  const auto document = nlohmann::json::parse(tool.out.str());
  EXPECT_EQ(document["output"]["shape"], nlohmann::json({1, 2, 2, 4}));
  EXPECT_EQ(document["output"]["file"], TempPath("out.npy"));
  EXPECT_EQ(document["timings"]["compute_ns"], 345000);
  EXPECT_FALSE(document.contains("lse"));
}

TEST(AttendCommandTest, ARequestThatIsRefusedAsInvalidIsTheUsersMistake) {
  ToolRun tool;
  tool.connection->failure = absl::InvalidArgumentError("alignment must be named");
  EXPECT_EQ(tool.Run(AttendWith({"--output", TempPath("never.npy")})), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("INVALID_ARGUMENT: alignment must be named"));
  EXPECT_EQ(ReadNpy(TempPath("never.npy")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace triad::tools
