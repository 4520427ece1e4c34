// A row's bytes depend on its own query and the keys it sees: the table in ARCHITECTURE.md, "Kernels".
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "tests/conformance/conformance_test.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

// Query `i` alone, against the keys that were there when it came: a decode step.
AttentionContent DecodeStep(const AttentionContent& prefill, int64_t i) {
  AttentionContent step = prefill;
  step.options.q_len = 1;
  step.options.key_lengths = {{prefill.position(0, i) + 1}};
  const std::array<int64_t, 4>& all = prefill.query.shape;
  step.query = Array4({all[0], all[1], 1, all[3]}, 0);
  for (int64_t h = 0; h < all[1]; ++h) {
    std::copy_n(prefill.query.values.begin() + (h * all[2] + i) * all[3], all[3],
                step.query.values.begin() + h * all[3]);
  }
  return step;
}

// Who samples from one and trains on the other needs exactly this. Not for oneDNN's f32 products: that their rows'
// bytes do not depend on the number of rows is no promise of theirs.
class PrefillAndDecodeTest : public ConformanceTest {
 protected:
  // Compares `rows` of a prefill of two heads that share keys, at the end of `kv_len` of them.
  void Compare(int64_t q_len, int64_t kv_len, const std::vector<int64_t>& rows, int odd_values = 0) const {
    AttentionContent prefill = Content({.seed = 21,
                                        .heads = 2,
                                        .q_len = q_len,
                                        .kv_len = kv_len,
                                        .qk_head_dim = 12,
                                        .v_head_dim = 20,
                                        .causal = true,
                                        .alignment = Alignment::kBottomRight,
                                        .sinks = {0.5f, -1},
                                        .return_weights = false});
    for (int n = 1; n <= odd_values; ++n) {  // in other dims, of which the answers are not numbers in the end
      prefill.value.at(0, 0, n * kv_len / (odd_values + 1), n % 20) = n % 3 == 0 ? kNaN : kInfinity;
    }
    Compare(prefill, rows);
  }

  void Compare(const AttentionContent& prefill, const std::vector<int64_t>& rows) const {
    const int64_t q_len = prefill.options.q_len;
    const auto v_head_dim = static_cast<size_t>(prefill.options.v_head_dim);
    const Answer whole = Attend(prefill);
    for (int64_t i : rows) {
      const Answer step = Attend(DecodeStep(prefill, i));
      for (int64_t h = 0; h < 2; ++h) {
        const float* row = &whole.output.values[static_cast<size_t>(h * q_len + i) * v_head_dim];
        const float* alone = &step.output.values[static_cast<size_t>(h) * v_head_dim];
        EXPECT_EQ(std::memcmp(row, alone, v_head_dim * sizeof(float)), 0) << "query " << i << ", head " << h;
        EXPECT_EQ(std::bit_cast<uint32_t>(whole.lse.at(0, h, i, 0)), std::bit_cast<uint32_t>(step.lse.at(0, h, 0, 0)));
      }
    }
  }
};

TEST_P(PrefillAndDecodeTest, ARowOfAPrefillEqualsItsDecodeStep) {
  Compare(/*q_len=*/300, /*kv_len=*/300, {0, 1, 6, 15, 63, 64, 191, 192, 255, 256, 299});
}

// The fused kernel merges chunks of 4096 keys: those of the longer ones are items of their own, of the steps at 4150
// not.
TEST_P(PrefillAndDecodeTest, SoDoesARowThatSeesManyKeys) {
  Compare(/*q_len=*/70, /*kv_len=*/4150, {0, 15, 16, 17, 69});
  Compare(/*q_len=*/20, /*kv_len=*/8200, {0, 11, 12, 13, 19});
  Compare(/*q_len=*/20, /*kv_len=*/8200, {0, 12, 19}, /*odd_values=*/7);
}

// Sums of the later values leave f32; the rows before do not see them.
TEST_P(PrefillAndDecodeTest, SoDoesARowBesideOthersWhoseSumsAreHuge) {
  AttentionContent prefill = Content({.seed = 22,
                                      .heads = 2,
                                      .q_len = 40,
                                      .kv_len = 40,
                                      .causal = true,
                                      .alignment = Alignment::kBottomRight,
                                      .return_weights = false});
  const bool is_f16 = dtype() == DType::kF16;  // whose largest is 65504
  for (int64_t j = 0; j < 40; ++j) {
    for (int64_t d = 0; d < prefill.options.v_head_dim; ++d) {
      prefill.value.at(0, 0, j, d) = Round(dtype(), j < 20 ? (is_f16 ? 1e-4f : 1e-30f) : (is_f16 ? 6e4f : 3e38f));
    }
  }
  Compare(prefill, {0, 1, 18, 19, 20, 21, 39});
}

// Query 0 adds what underflows to -0 to -0. Beside query 1 it adds 0 * 1 too, of a key it does not see: +0.
TEST_P(PrefillAndDecodeTest, SoDoesARowWhoseSumsBecomeMinusZero) {
  AttentionContent prefill = Content({.heads = 2,
                                      .q_len = 8,
                                      .kv_len = 137,
                                      .qk_head_dim = 1,
                                      .v_head_dim = 1,
                                      .scale = 1.0f,
                                      .causal = true,
                                      .alignment = Alignment::kBottomRight});
  std::fill(prefill.query.values.begin(), prefill.query.values.end(), 1.0f);
  for (int64_t j = 0; j < 137; ++j) {
    prefill.key.at(0, 0, j, 0) = j == 128 ? 200.0f : j == 129 ? 114.0f : 0.0f;
    prefill.value.at(0, 0, j, 0) = j < 128 ? -1.0f : j == 128 ? 0.0f : j == 129 ? Round(dtype(), -1e-9f) : 1.0f;
  }
  Compare(prefill, {0, 1, 7});
}

// A NaN that arose from infinities and one that came with the request differ in sign, and which of two a sum keeps
// depends on how the instructions were put together.
TEST_P(PrefillAndDecodeTest, SoDoesARowOfNanAndInfinities) {
  constexpr float kOdd[] = {kNaN, kInfinity, -kInfinity, -kNaN};
  for (uint64_t seed = 0; seed < 24; ++seed) {
    AttentionContent prefill = Content({.seed = seed,
                                        .heads = 2,
                                        .q_len = 40,
                                        .kv_len = 170,
                                        .causal = true,
                                        .alignment = Alignment::kBottomRight,
                                        .return_weights = false});
    std::mt19937_64 random(seed);
    const auto spoil = [&](Array4& tensor, int times) {
      for (; times > 0; --times) tensor.values[random() % tensor.values.size()] = kOdd[random() % std::size(kOdd)];
    };
    spoil(prefill.value, seed % 3 == 0 ? 300 : 5);
    spoil(prefill.key, seed % 2 == 0 ? 20 : 3);
    spoil(prefill.query, seed % 4);
    Compare(prefill, {0, 1, 7, 15, 16, 17, 31, 39});
  }
}

INSTANTIATE_TEST_SUITE_P(RowByRow, PrefillAndDecodeTest,
                         testing::Combine(testing::Values("reference", "fused"),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kF16)),
                         PathAndTypeName);

}  // namespace
}  // namespace triad
