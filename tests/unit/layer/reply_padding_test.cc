#include "core/layer/reply_padding.h"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/layer_case.h"

namespace triad {
namespace {

constexpr int64_t kHeads = 4;
constexpr int64_t kWidth = 32;
constexpr float kUnwritten = 12345;

// The padding of a request of f32, written by the items in reverse into memory that held `kUnwritten`.
struct Padding {
  Padding(const TestLayer& layer, std::vector<int64_t> sequence_lengths, int64_t sequence_tokens)
      : lengths(std::move(sequence_lengths)), tokens(sequence_tokens) {
    const auto batch = static_cast<int64_t>(lengths.size());
    const std::vector<float> rows(static_cast<size_t>(batch * tokens * kWidth));
    ForwardRequest request{.input = {.data = reinterpret_cast<const std::byte*>(rows.data()),
                                     .dtype = DType::kF32,
                                     .shape = {batch, tokens, kWidth}}};
    request.lengths = lengths;
    request.return_lse = request.return_weights = true;
    const absl::StatusOr<ForwardProblem> problem = ValidateForward(request, layer.spec, AttentionLimits());
    EXPECT_TRUE(problem.ok()) << problem.status();
    output.assign(rows.size(), kUnwritten);
    lse.assign(static_cast<size_t>(batch * kHeads * tokens), kUnwritten);
    weights.assign(lse.size() * static_cast<size_t>(tokens), kUnwritten);
    const ReplyPadding padding(*layer.hosted, *problem);
    items = padding.Items();
    Scratch scratch;
    for (auto item = items.rbegin(); item != items.rend(); ++item) {
      scratch.Reset();
      padding.Fill(
          *item, {.output = reinterpret_cast<std::byte*>(output.data()), .lse = lse.data(), .weights = weights.data()},
          scratch);
      flop += item->flop;
    }
    EXPECT_EQ(flop, padding.flop());
  }

  // Whether `values`, rows [batch, heads, tokens] of `width`, hold `padding` in rows past the length and nothing new
  // before.
  void Expect(const std::vector<float>& values, int64_t heads, int64_t width, const std::vector<float>& padding) const {
    size_t wrong = 0;
    size_t at = 0;
    for (const int64_t length : lengths) {
      for (int64_t row = 0; row < heads * tokens; ++row) {
        for (int64_t column = 0; column < width; ++column, ++at) {
          const bool counts = row % tokens < length;
          wrong += values[at] != (counts ? kUnwritten : padding[static_cast<size_t>(column)]);
        }
      }
    }
    EXPECT_EQ(at, values.size());
    EXPECT_EQ(wrong, 0u);
  }

  const std::vector<int64_t> lengths;
  const int64_t tokens;
  std::vector<float> output;
  std::vector<float> lse;
  std::vector<float> weights;
  std::vector<ReplyPadding::Item> items;
  double flop = 0;
};

TEST(ReplyPaddingTest, WritesWhatDoesNotCountAndNothingElse) {
  for (const bool has_biases : {true, false}) {
    const TestLayer layer({.model_dim = kWidth, .heads = kHeads}, has_biases);
    std::vector<float> bias(kWidth);
    if (has_biases) std::memcpy(bias.data(), layer.tensors.output.bias.data(), kWidth * sizeof(float));
    for (const auto& lengths : std::vector<std::vector<int64_t>>{
             {0}, {1}, {299}, {1, 0, 299}, {0, 0, 300, 7}, {300, 300, 0}, {150, 150, 150, 150, 150}}) {
      const Padding padding(layer, lengths, 300);
      padding.Expect(padding.output, 1, kWidth, bias);
      padding.Expect(padding.lse, kHeads, 1, {-std::numeric_limits<float>::infinity()});
      padding.Expect(padding.weights, kHeads, 300, std::vector<float>(300));
    }
  }
}

TEST(ReplyPaddingTest, AnItemIsAtMostAMebibyte) {
  const TestLayer layer({.model_dim = kWidth, .heads = kHeads});
  const Padding padding(layer, {1, 0, 299}, 300);
  constexpr int64_t kBytes = (299 + 300 + 1) * (kWidth * 4 + kHeads * 4 + kHeads * 300 * 4);
  EXPECT_GE(padding.items.size(), static_cast<size_t>(kBytes >> 20));
  EXPECT_LE(padding.items.size(), static_cast<size_t>(kBytes >> 20) + 3u) << "one more for each tensor";
}

TEST(ReplyPaddingTest, WithoutPaddingThereIsNothingToDo) {
  const TestLayer layer({.model_dim = kWidth, .heads = kHeads});
  EXPECT_TRUE(Padding(layer, {}, 300).items.empty());
  EXPECT_TRUE(Padding(layer, {300, 300}, 300).items.empty());
  EXPECT_TRUE(Padding(layer, {0, 0}, 0).items.empty());
}

TEST(ReplyPaddingTest, PackedHasNone) {
  const TestLayer layer({.model_dim = kWidth, .heads = kHeads});
  TestRequest request(layer.spec, DType::kF32, {{.input = std::vector<float>(3 * kWidth)}, {}});
  const absl::StatusOr<ForwardProblem> problem = ValidateForward(request.request, layer.spec, AttentionLimits());
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_TRUE(ReplyPadding(*layer.hosted, *problem).Items().empty());
}

}  // namespace
}  // namespace triad
