#include "core/layer/layer_tensors.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/layer/weight_bytes.h"

namespace triad {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Widths beside, at and past the edge of a transposed square (64).
LayerSpec Separate() {
  return {.model_dim = 65,
          .output_dim = 63,
          .heads = 10,
          .kv_heads = 5,
          .qk_head_dim = 13,
          .v_head_dim = 7,
          .alignment = Alignment::kTopLeft,
          .query = {.weight = "q.w", .bias = "q.b"},
          .key = {.weight = "k.w"},
          .value = {.weight = "v.w", .bias = "v.b"},
          .output = {.weight = "o.w", .bias = "o.b"}};
}

LayerSpec FusedSpec() {
  LayerSpec spec = Separate();
  spec.query = spec.key = spec.value = {};
  spec.fused = {.weight = "qkv.w", .bias = "qkv.b"};
  return spec;
}

// Distinct among neighbours in both directions, and exact in every type.
float Weight(int64_t tensor, int64_t output, int64_t input) {
  return static_cast<float>((tensor * 50 + output * 31 + input * 7) % 255 - 127) / 16;
}
float Bias(int64_t tensor, int64_t output) { return Weight(tensor, output, 1000); }

// One projection, of `outputs` whose first is output `first` of `tensor`.
struct Block {
  int64_t tensor;
  int64_t outputs;
};

// The weight that stacks `blocks`, as `order` lays it.
void PutWeight(WeightBytes& file, const std::string& name, DType dtype, WeightOrder order,
               const std::vector<Block>& blocks, int64_t inputs) {
  int64_t outputs = 0;
  for (const Block& block : blocks) outputs += block.outputs;
  const bool out_in = order == WeightOrder::kOutIn;
  std::vector<float> values(static_cast<size_t>(outputs * inputs));
  int64_t row = 0;
  for (const Block& block : blocks) {
    for (int64_t o = 0; o < block.outputs; ++o, ++row) {
      for (int64_t i = 0; i < inputs; ++i) {
        values[static_cast<size_t>(out_in ? row * inputs + i : i * outputs + row)] = Weight(block.tensor, o, i);
      }
    }
  }
  file.Put(name, dtype, out_in ? Shape{outputs, inputs} : Shape{inputs, outputs}, values);
}

void PutBias(WeightBytes& file, const std::string& name, DType dtype, const std::vector<Block>& blocks) {
  std::vector<float> values;
  for (const Block& block : blocks) {
    for (int64_t o = 0; o < block.outputs; ++o) values.push_back(Bias(block.tensor, o));
  }
  file.Put(name, dtype, {static_cast<int64_t>(values.size())}, values);
}

WeightBytes FileOf(const LayerSpec& spec, DType dtype) {
  WeightBytes file;
  const Block query = {0, spec.query_width()};
  const Block key = {1, spec.key_width()};
  const Block value = {2, spec.value_width()};
  const Block output = {3, spec.output_dim};
  if (spec.is_fused()) {
    PutWeight(file, "qkv.w", dtype, spec.weight_order, {query, key, value}, spec.model_dim);
    PutBias(file, "qkv.b", dtype, {query, key, value});
  } else {
    PutWeight(file, "q.w", dtype, spec.weight_order, {query}, spec.model_dim);
    PutWeight(file, "k.w", dtype, spec.weight_order, {key}, spec.key_input_dim());
    PutWeight(file, "v.w", dtype, spec.weight_order, {value}, spec.key_input_dim());
    PutBias(file, "q.b", dtype, {query});
    PutBias(file, "v.b", dtype, {value});
  }
  PutWeight(file, "o.w", dtype, spec.weight_order, {output}, spec.mixed_width());
  PutBias(file, "o.b", dtype, {output});
  return file;
}

absl::StatusOr<LayerTensors> Read(const LayerSpec& spec, const WeightBytes& file) {
  const std::string bytes = file.Bytes();
  const absl::StatusOr<SafetensorsView> view = ParseBytes(bytes);
  if (!view.ok()) return view.status();
  return ReadLayerTensors(spec, *view);
}

std::string Refusal(const LayerSpec& spec, const WeightBytes& file) {
  const absl::StatusOr<LayerTensors> tensors = Read(spec, file);
  if (tensors.ok()) return "accepted";
  EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument) << tensors.status();
  return std::string(tensors.status().message());
}

const float* Values(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.data()); }

// How many elements differ from what FileOf wrote for projection `tensor`.
int64_t Wrong(const ProjectionTensors& read, int64_t tensor, bool has_bias) {
  int64_t wrong = 0;
  const int64_t inputs = read.weight.shape()[1];
  for (int64_t e = 0; e < read.weight.element_count(); ++e) {
    wrong += Values(read.weight)[e] != Weight(tensor, e / inputs, e % inputs);
  }
  for (int64_t o = 0; o < read.bias.element_count(); ++o) wrong += Values(read.bias)[o] != Bias(tensor, o);
  return wrong + (read.bias.shape() != Shape{has_bias ? read.weight.shape()[0] : 0});
}

using Way = std::tuple<bool, WeightOrder, DType>;  // fused, order, type

class LayerTensorsWayTest : public testing::TestWithParam<Way> {};

TEST_P(LayerTensorsWayTest, EveryOrderFusionAndTypeGivesTheSameTensors) {
  const auto& [fused, order, dtype] = GetParam();
  LayerSpec spec = fused ? FusedSpec() : Separate();
  spec.weight_order = order;
  const absl::StatusOr<LayerTensors> read = Read(spec, FileOf(spec, dtype));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->query.weight.shape(), Shape({130, 65}));
  EXPECT_EQ(read->key.weight.shape(), Shape({65, 65}));
  EXPECT_EQ(read->value.weight.shape(), Shape({35, 65}));
  EXPECT_EQ(read->output.weight.shape(), Shape({63, 70}));
  EXPECT_EQ(Wrong(read->query, 0, /*has_bias=*/true), 0);
  EXPECT_EQ(Wrong(read->key, 1, /*has_bias=*/fused), 0);
  EXPECT_EQ(Wrong(read->value, 2, /*has_bias=*/true), 0);
  EXPECT_EQ(Wrong(read->output, 3, /*has_bias=*/true), 0);
}

INSTANTIATE_TEST_SUITE_P(All, LayerTensorsWayTest,
                         testing::Combine(testing::Bool(), testing::Values(WeightOrder::kOutIn, WeightOrder::kInOut),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kF16)));

TEST(LayerTensorsTest, CrossAttentionReadsKeysAndValuesOfTheContextsWidth) {
  LayerSpec spec = Separate();
  spec.context_dim = 130;
  for (WeightOrder order : {WeightOrder::kOutIn, WeightOrder::kInOut}) {
    spec.weight_order = order;
    const absl::StatusOr<LayerTensors> read = Read(spec, FileOf(spec, DType::kF32));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->key.weight.shape(), Shape({65, 130}));
    EXPECT_EQ(Wrong(read->key, 1, /*has_bias=*/false) + Wrong(read->value, 2, /*has_bias=*/true), 0);
  }
}

TEST(LayerTensorsTest, NamesTheTensorThatIsMissing) {
  WeightBytes file = FileOf(Separate(), DType::kF32);
  file.Erase("k.w");
  EXPECT_EQ(Refusal(Separate(), file), "key.weight: 'k.w' is not in the file");
  file = FileOf(Separate(), DType::kF32);
  file.Erase("o.b");
  EXPECT_EQ(Refusal(Separate(), file), "output.bias: 'o.b' is not in the file");
}

TEST(LayerTensorsTest, NamesBothShapes) {
  WeightBytes file = FileOf(Separate(), DType::kF32);
  file.Put("q.w", DType::kF32, {130, 64}, std::vector<float>(130 * 64));
  EXPECT_EQ(Refusal(Separate(), file),
            "query.weight: 'q.w' must have shape [130, 65] (weight_order OUT_IN); was [130, 64]");
  file.Put("q.w", DType::kF32, {65, 130}, std::vector<float>(130 * 65));
  EXPECT_EQ(Refusal(Separate(), file),
            "query.weight: 'q.w' must have shape [130, 65] (weight_order OUT_IN); was [65, 130], which the other "
            "weight_order would take");
  file.Put("q.w", DType::kF32, {130 * 65}, std::vector<float>(130 * 65));
  EXPECT_THAT(Refusal(Separate(), file), HasSubstr("was [8450]"));
  file = FileOf(Separate(), DType::kF32);
  file.Put("v.b", DType::kF32, {35, 1}, std::vector<float>(35));
  EXPECT_EQ(Refusal(Separate(), file), "value.bias: 'v.b' must have shape [35]; was [35, 1]");
  file = FileOf(FusedSpec(), DType::kF32);
  file.Put("qkv.w", DType::kF32, {229, 65}, std::vector<float>(229 * 65));
  EXPECT_THAT(Refusal(FusedSpec(), file), HasSubstr("fused.weight: 'qkv.w' must have shape [230, 65]"));
}

TEST(LayerTensorsTest, RefusesTypesThatAreNoFloats) {
  WeightBytes file = FileOf(Separate(), DType::kF32);
  file.PutBytes("k.w", "BOOL", {65, 65}, std::string(65 * 65, '\1'));
  EXPECT_EQ(Refusal(Separate(), file), "key.weight: 'k.w' must be FLOAT32, BFLOAT16 or FLOAT16; was BOOL");
  for (const char* type : {"F64", "I64"}) {
    file.PutBytes("k.w", type, {65, 65}, std::string(65 * 65 * 8, '\0'));
    EXPECT_THAT(Refusal(Separate(), file), HasSubstr(absl::StrCat("key.weight: 'k.w': type ", type)));
  }
  file.PutBytes("k.w", "F8_E4M3", {65, 65}, std::string(65 * 65, '\0'));
  EXPECT_THAT(Refusal(Separate(), file), HasSubstr("key.weight: 'k.w': type F8_E4M3"));
}

TEST(LayerTensorsTest, RefusesATensorThatTheSpecDoesNotName) {
  WeightBytes file = FileOf(Separate(), DType::kF32);
  file.Put("q_norm.weight", DType::kF32, {13}, std::vector<float>(13, 1));
  EXPECT_THAT(Refusal(Separate(), file),
              HasSubstr("'q_norm.weight' is in the file, but the layer names no such tensor"));
  // A bias that the spec forgot, of a type that could not be read.
  file = FileOf(Separate(), DType::kF32);
  file.PutBytes("k.b", "I64", {0}, "");
  EXPECT_THAT(Refusal(Separate(), file), HasSubstr("'k.b' is in the file"));
}

TEST(LayerTensorsTest, RefusesElementsThatAreNotFinite) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      for (WeightOrder order : {WeightOrder::kOutIn, WeightOrder::kInOut}) {
        LayerSpec spec = Separate();
        spec.weight_order = order;
        WeightBytes file = FileOf(spec, dtype);
        std::vector<float> values(130 * 65, 1);
        const int64_t columns = order == WeightOrder::kOutIn ? 65 : 130;
        values[static_cast<size_t>(64 * columns + 64)] = bad;
        file.Put("q.w", dtype, {130 * 65 / columns, columns}, values);
        EXPECT_THAT(Refusal(spec, file), HasSubstr("query.weight: 'q.w'[64, 64] must be finite"));
      }
    }
  }
  WeightBytes file = FileOf(FusedSpec(), DType::kF16);
  std::vector<float> bias(230, 0);
  bias[229] = std::numeric_limits<float>::infinity();
  file.Put("qkv.b", DType::kF16, {230}, bias);
  EXPECT_EQ(Refusal(FusedSpec(), file), "fused.bias: 'qkv.b'[229] must be finite in the layer's compute type; was inf");
}

TEST(LayerTensorsTest, ALayerInBf16RefusesWhatRoundsToInfinityThere) {
  LayerSpec spec = Separate();
  WeightBytes file = FileOf(spec, DType::kF32);
  std::vector<float> bias(63, 0);
  bias[5] = 0x1.ffp127f;  // halfway between the largest of bf16 and 2^128
  file.Put("o.b", DType::kF32, {63}, bias);
  EXPECT_EQ(Refusal(spec, file), "accepted");
  spec.compute = DType::kBf16;
  EXPECT_THAT(Refusal(spec, file), HasSubstr("output.bias: 'o.b'[5] must be finite in the layer's compute type"));
  bias[5] = std::nextafter(bias[5], 0.0f);
  file.Put("o.b", DType::kF32, {63}, bias);
  EXPECT_EQ(Refusal(spec, file), "accepted");
}

TEST(LayerTensorsTest, ReadsTensorsAtOddAddresses) {
  const LayerSpec spec = Separate();
  for (DType dtype : {DType::kF32, DType::kF16}) {
    WeightBytes file = FileOf(spec, dtype);
    for (size_t shift = 0; shift < 4; ++shift) {
      const std::string shifted = std::string(shift, ' ') + file.Bytes();
      const auto view =
          SafetensorsView::Parse({reinterpret_cast<const std::byte*>(shifted.data()) + shift, shifted.size() - shift});
      ASSERT_TRUE(view.ok()) << view.status();
      const absl::StatusOr<LayerTensors> read = ReadLayerTensors(spec, *view);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(Wrong(read->query, 0, /*has_bias=*/true), 0);
    }
  }
}

// -- Seeded weights --------------------------------------------------------------------------------------------------

TEST(SeededTensorsTest, TheDemoLayerIsValidAndHasItsShapes) {
  const LayerSpec spec = DemoLayerSpec();
  EXPECT_EQ(ValidateLayerSpec(spec), absl::OkStatus());
  const absl::StatusOr<LayerTensors> made = MakeSeededTensors(spec, 7);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const ProjectionTensors* p : {&made->query, &made->key, &made->value, &made->output}) {
    EXPECT_EQ(p->weight.shape(), Shape({512, 512}));
    EXPECT_EQ(p->bias.shape(), Shape({0}));
  }
}

// By a computation made outside: SplitMix64's published first outputs for seed 1234567 are 0x599ed017fb08fc85,
// 0x2c73f08458540fa5, 0x883ebce5a3f27c77.
TEST(SeededTensorsTest, TheFirstWeightIsTheSumOfTwelveKnownUniforms) {
  LayerSpec spec = Separate();
  spec.model_dim = 64;  // 1 / sqrt(64) is exact
  const absl::StatusOr<LayerTensors> made = MakeSeededTensors(spec, 1234567);
  ASSERT_TRUE(made.ok()) << made.status();
  const int64_t sum =
      0x599e + 0xd017 + 0xfb08 + 0xfc85 + 0x2c73 + 0xf084 + 0x5854 + 0x0fa5 + 0x883e + 0xbce5 + 0xa3f2 + 0x7c77;
  EXPECT_EQ(Values(made->query.weight)[0], static_cast<float>(sum - 393210) / 65536 / 8);
}

TEST(SeededTensorsTest, WeightsHaveVarianceOneOverInputs) {
  const absl::StatusOr<LayerTensors> made = MakeSeededTensors(DemoLayerSpec(), 7);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const ProjectionTensors* p : {&made->query, &made->key, &made->value, &made->output}) {
    double sum = 0, squares = 0;
    const int64_t count = p->weight.element_count();
    for (int64_t i = 0; i < count; ++i) {
      const double w = Values(p->weight)[i];
      sum += w;
      squares += w * w;
    }
    // Of 262144 samples: five standard errors of the mean (1 / sqrt(n)) and of the variance (sqrt(2 / n)).
    EXPECT_LT(std::abs(sum / std::sqrt(512.0 * 512) * std::sqrt(512.0)), 5.0);
    EXPECT_NEAR(squares / static_cast<double>(count) * 512, 1, 5 * std::sqrt(2.0 / static_cast<double>(count)));
  }
}

TEST(SeededTensorsTest, BytesDependOnTheSeedAlone) {
  const LayerSpec spec = Separate();
  const auto bytes = [&](uint64_t seed) {
    const absl::StatusOr<LayerTensors> made = MakeSeededTensors(spec, seed);
    const Tensor& weight = made->output.weight;
    return std::string(reinterpret_cast<const char*>(weight.data()), static_cast<size_t>(weight.byte_size()));
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(SeededTensorsTest, ProjectionsDifferAndBiasesAreZeroWhereTheyAreNamed) {
  const absl::StatusOr<LayerTensors> made = MakeSeededTensors(Separate(), 3);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE(Values(made->query.weight)[0], Values(made->key.weight)[0]);
  EXPECT_EQ(made->query.bias.shape(), Shape({130}));
  EXPECT_THAT(std::vector<float>(Values(made->query.bias), Values(made->query.bias) + 130), Each(0.0f));
  EXPECT_EQ(made->key.bias.shape(), Shape({0}));
}

TEST(SeededTensorsTest, RefusesASpecThatIsNotValid) {
  LayerSpec spec = DemoLayerSpec();
  spec.heads = 0;
  EXPECT_EQ(MakeSeededTensors(spec, 1).status().message(), "heads must be >= 1; was 0");
}

}  // namespace
}  // namespace triad
