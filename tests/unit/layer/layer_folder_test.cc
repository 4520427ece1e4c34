#include "core/layer/layer_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/layer/layer_tensors.h"
#include "core/tensor/file_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/layer/weight_bytes.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSpec[] = R"(
model_dim: 16
heads: 2
query { weight: "q" }
key { weight: "k" }
value { weight: "v" bias: "vb" }
output { weight: "o" }
)";

WeightBytes Weights() {
  WeightBytes file;
  for (const char* name : {"q", "k", "v", "o"}) file.Put(name, DType::kF32, {16, 16}, std::vector<float>(256, 0.25f));
  file.Put("vb", DType::kF32, {16}, std::vector<float>(16, 0.5f));
  return file;
}

// A folder of its own for each test, gone with it.
class LayerFolderTest : public testing::Test {
 protected:
  LayerFolderTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "/layer_XXXXXX");
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void SetUp() override {
    Write("layer.textproto", kSpec);
    Write("weights.safetensors", Weights().Bytes());
  }
  ~LayerFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Write(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(WriteFile(Path(name), {bytes}).ok());
  }
  absl::StatusOr<std::unique_ptr<const HostedLayer>> Load() const {
    return LoadLayerFolder(folder_, DetectInstructionSet());
  }
  // The message of a FAILED_PRECONDITION.
  std::string Refusal() const {
    const absl::Status status = Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  }
  std::string RefusalOfWeights(const std::string& bytes) const {
    Write("weights.safetensors", bytes);
    return Refusal();
  }

  std::string folder_;
};

TEST_F(LayerFolderTest, LoadsALayer) {
  const auto layer = Load();
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_EQ((*layer)->spec().model_dim, 16);
  EXPECT_EQ((*layer)->spec().qk_head_dim, 8);
  EXPECT_GT((*layer)->weights_bytes(), 0);
}

TEST_F(LayerFolderTest, NamesTheFileThatIsNotThere) {
  for (const char* name : {"weights.safetensors", "layer.textproto"}) {
    ASSERT_EQ(std::remove(Path(name).c_str()), 0);
    const absl::Status status = Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(name)));
  }
  EXPECT_EQ(LoadLayerFolder(Path("none"), DetectInstructionSet()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LayerFolderTest, NamesFileAndPlaceOfWhatIsWrongInTheSpec) {
  Write("layer.textproto", absl::StrCat(kSpec, "dropout: 0.1\n"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("/layer.textproto: line 8, column 8: "), HasSubstr("dropout")));
  Write("layer.textproto", absl::StrCat(kSpec, "kv_heads: 3\n"));
  EXPECT_THAT(Refusal(), HasSubstr("/layer.textproto: kv_heads must divide heads (2); was 3"));
  Write("layer.textproto", absl::StrCat(kSpec, "key_norm: \"k_norm\"\n"));
  EXPECT_THAT(Refusal(), HasSubstr("/layer.textproto: key_norm: per-head normalisation of keys is not computed"));
  Write("layer.textproto", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(Refusal(), HasSubstr("/layer.textproto: 1048577 bytes, of at most 1048576"));
  Write("layer.textproto", "");
  EXPECT_THAT(Refusal(), HasSubstr("/layer.textproto: model_dim must be >= 1; was 0"));
}

TEST_F(LayerFolderTest, NamesFileTensorAndReasonOfWhatIsWrongInTheWeights) {
  WeightBytes file = Weights();
  file.Put("q", DType::kF32, {16, 8}, std::vector<float>(128));
  EXPECT_THAT(RefusalOfWeights(file.Bytes()),
              HasSubstr("/weights.safetensors: query.weight: 'q' must have shape [16, 16] (weight_order OUT_IN); was "
                        "[16, 8]"));
  file = Weights();
  file.Erase("vb");
  EXPECT_THAT(RefusalOfWeights(file.Bytes()), HasSubstr("/weights.safetensors: value.bias: 'vb' is not in the file"));
  file = Weights();
  file.Put("extra", DType::kF32, {1}, {1});
  EXPECT_THAT(RefusalOfWeights(file.Bytes()), HasSubstr("/weights.safetensors: 'extra' is in the file, but"));
}

TEST_F(LayerFolderTest, RefusesWeightsTornAnywhere) {
  const auto whole = static_cast<off_t>(Weights().Bytes().size());
  // Each byte of the header, and the data in steps that meet no boundary of an element.
  for (off_t size = whole - 1; size >= 0; size -= size > 600 ? 97 : 1) {
    ASSERT_EQ(truncate(Path("weights.safetensors").c_str(), size), 0);
    EXPECT_THAT(Refusal(), HasSubstr("/weights.safetensors: ")) << "torn at " << size;
  }
}

TEST_F(LayerFolderTest, RefusesHostileHeaders) {
  const std::string q = R"({"q":{"dtype":"F32","shape":[2],"data_offsets":)";
  for (const auto& [bytes, reason] : std::map<std::string, std::string>{
           {std::string(8, '\xff'), "past the limit"},
           {SafetensorsBytes(q + "[0,8]},\"q\":{", "abcdefgh"), "'q': named twice"},
           {SafetensorsBytes(q + "[0,800]}}", "abcdefgh"), "bytes do not hold shape [2] of F32"},
           {SafetensorsBytes(q + "[8,16]}}", "abcdefgh"), "'q': at [8, 16] it reaches past the end of the file"},
           {SafetensorsBytes(q + R"([0,8]},"k":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "abcdefgh"),
            "overlaps the tensor before it"},
           {SafetensorsBytes(std::string(100000, '{'), ""), "not JSON"}}) {
    EXPECT_THAT(RefusalOfWeights(bytes), AllOf(HasSubstr("/weights.safetensors: "), HasSubstr(reason)));
  }
}

TEST_F(LayerFolderTest, AWholeModelIsRefusedBeforeItIsRead) {
  ASSERT_EQ(truncate(Path("weights.safetensors").c_str(), off_t{1} << 40), 0);
  EXPECT_THAT(Refusal(), HasSubstr("/weights.safetensors: 1099511627776 bytes, of at most "));
}

TEST_F(LayerFolderTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(std::remove(Path("weights.safetensors").c_str()), 0);
  ASSERT_EQ(mkfifo(Path("weights.safetensors").c_str(), 0600), 0);  // opening it would wait for a writer
  EXPECT_THAT(Refusal(), HasSubstr("/weights.safetensors: not a regular file"));
}

TEST_F(LayerFolderTest, MessagesStayShort) {
  WeightBytes file = Weights();
  file.Put(absl::StrCat("x", std::string(100000, 'n')), DType::kF32, {1}, {1});
  EXPECT_LE(RefusalOfWeights(file.Bytes()).size(), 1024u + 3);
}

// A map of the file would end the process here: SIGBUS, whenever a read falls behind the truncation.
TEST_F(LayerFolderTest, AWriterAtWorkCannotEndTheProcess) {
  const std::string path = Path("weights.safetensors");
  const std::string whole = Weights().Bytes();
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) {
      EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(whole.size() / 2)), 0);
      EXPECT_TRUE(WriteFile(path, {whole}).ok());
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const absl::Status status = Load().status();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kFailedPrecondition) << status;
  }
  done = true;
  writer.join();
  EXPECT_EQ(Load().status(), absl::OkStatus());
}

}  // namespace
}  // namespace triad
