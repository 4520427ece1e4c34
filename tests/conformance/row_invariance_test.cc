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

// Queries [first, first + count) of `tensor`, which has a row for each, or one for all.
Array4 Queries(const Array4& tensor, int64_t first, int64_t count) {
  const std::array<int64_t, 4>& all = tensor.shape;
  if (all[2] == 1) return tensor;
  Array4 some({all[0], all[1], count, all[3]}, 0);
  for (int64_t h = 0; h < all[1]; ++h) {
    for (int64_t i = 0; i < count; ++i) std::copy_n(tensor.row(0, h, first + i), all[3], some.row(0, h, i));
  }
  return some;
}

// Queries [first, first + count) alone, against the keys that were there when the last of them came: a chunk of the
// prefill, or of one query a decode step.
AttentionContent Chunk(const AttentionContent& prefill, int64_t first, int64_t count) {
  AttentionContent chunk = prefill;
  chunk.options.q_len = count;
  chunk.options.key_lengths = {{prefill.position(0, first + count - 1) + 1}};
  chunk.query = Queries(prefill.query, first, count);
  if (prefill.keep) chunk.keep = Queries(*prefill.keep, first, count);
  if (prefill.bias) chunk.bias = Queries(*prefill.bias, first, count);
  return chunk;
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
    const Answer whole = Attend(prefill);
    for (int64_t i : rows) CompareChunk(prefill, whole, i, 1);
  }

  // Compares queries [first, first + count) of `whole`, the answer to `prefill`, with those of their chunk.
  void CompareChunk(const AttentionContent& prefill, const Answer& whole, int64_t first, int64_t count) const {
    const auto row_bytes = static_cast<size_t>(prefill.options.v_head_dim) * sizeof(float);
    const Answer chunk = Attend(Chunk(prefill, first, count));
    for (int64_t h = 0; h < prefill.options.heads; ++h) {
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::memcmp(whole.output.row(0, h, first + i), chunk.output.row(0, h, i), row_bytes), 0)
            << "query " << first + i << " in a chunk of " << count << ", head " << h;
        EXPECT_EQ(std::bit_cast<uint32_t>(whole.lse.at(0, h, first + i, 0)),
                  std::bit_cast<uint32_t>(chunk.lse.at(0, h, i, 0)));
      }
    }
  }
};

TEST_P(PrefillAndDecodeTest, ARowOfAPrefillEqualsItsDecodeStep) {
  Compare(/*q_len=*/300, /*kv_len=*/300, {0, 1, 6, 15, 63, 64, 191, 192, 255, 256, 299});
}

// Chunks of few rows, of some and of more than an item's strip; heads that share keys and heads that do not (few rows
// of which are computed together in TOKENS_HEADS), widths with and without tails.
TEST_P(PrefillAndDecodeTest, SoDoRowsOfAChunkWhateverTheOptions) {
  constexpr int64_t kQueries = 70;
  const AttentionOptions base = {.seed = 27,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .q_len = kQueries,
                                 .kv_len = 300,
                                 .qk_head_dim = 64,
                                 .v_head_dim = 64,
                                 .causal = true,
                                 .alignment = Alignment::kBottomRight,
                                 .return_weights = false};
  std::vector<AttentionOptions> every(8, base);
  every[0].logit_softcap = 2;
  every[1].alibi = true;
  every[2].window = Window{.left = 40};
  every[3].keep = MaskSharing{};
  every[4].bias = MaskSharing{.heads = true};
  every[5].kv_heads = 4;
  every[6].layout = Layout::kHeadsTokens;
  every[6].qk_head_dim = every[6].v_head_dim = 128;
  every[7].qk_head_dim = 33;
  every[7].v_head_dim = 65;
  for (const AttentionOptions& options : every) {
    SCOPED_TRACE(ToString(options));
    const AttentionContent prefill = Content(options);
    const Answer whole = Attend(prefill);
    for (const int64_t count : {1, 2, 5, 48, 65}) {
      for (const int64_t first : {int64_t{0}, int64_t{3}, kQueries - count}) CompareChunk(prefill, whole, first, count);
    }
  }
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
