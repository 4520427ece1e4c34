// What must hold between answers, whatever the numbers are.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

class LawsTest : public ConformanceTest {
 protected:
  // Every option at once, ragged, several blocks long.
  AttentionContent Busy(Layout layout) const {
    return Content({.seed = 7,
                    .layout = layout,
                    .batch = 3,
                    .heads = 4,
                    .kv_heads = 2,
                    .q_len = 70,
                    .kv_len = 300,
                    .qk_head_dim = 20,
                    .v_head_dim = 12,
                    .logit_softcap = 30,
                    .causal = true,
                    .alignment = Alignment::kBottomRight,
                    .window = Window{.left = 200},
                    .alibi = true,
                    .sinks = {0.5f, 1, -1, 2},
                    .query_lengths = {{70, 1, 66}},
                    .key_lengths = {{300, 257, 65}},
                    .keep = MaskSharing{.heads = true},
                    .bias = MaskSharing{.batch = true}});
  }
};

Array4 Slice(const Array4& tensor, int64_t b) {
  if (tensor.shape[0] == 1) return tensor;
  Array4 slice({1, tensor.shape[1], tensor.shape[2], tensor.shape[3]}, 0);
  const auto size = static_cast<std::ptrdiff_t>(slice.values.size());
  std::copy_n(tensor.values.begin() + b * size, size, slice.values.begin());
  return slice;
}

// Sequence `b` alone.
AttentionContent Alone(const AttentionContent& content, int64_t b) {
  AttentionContent alone = content;
  alone.options.batch = 1;
  if (content.options.query_lengths) alone.options.query_lengths = {content.query_length(b)};
  if (content.options.key_lengths) alone.options.key_lengths = {content.key_length(b)};
  alone.query = Slice(content.query, b);
  alone.key = Slice(content.key, b);
  alone.value = Slice(content.value, b);
  if (content.keep) alone.keep = Slice(*content.keep, b);
  if (content.bias) alone.bias = Slice(*content.bias, b);
  return alone;
}

TEST_P(LawsTest, InABatchEqualsAlone) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    const AttentionContent content = Busy(layout);
    const Answer together = Attend(content);
    EXPECT_TRUE(MatchesReference(content, together));
    for (int64_t b = 0; b < content.options.batch; ++b) {
      const Answer alone = Attend(Alone(content, b));
      const Answer slice = {
          .output = Slice(together.output, b), .lse = Slice(together.lse, b), .weights = Slice(together.weights, b)};
      EXPECT_TRUE(alone.SameBytes(slice)) << "sequence " << b << " of " << ToString(content.options);
    }
  }
}

TEST_P(LawsTest, LayoutsAgreeByteForByte) {
  const Answer tokens_heads = Attend(Busy(Layout::kTokensHeads));
  EXPECT_TRUE(Attend(Busy(Layout::kHeadsTokens)).SameBytes(tokens_heads));
  EXPECT_TRUE(Attend(Busy(Layout::kPacked)).SameBytes(tokens_heads));
}

TEST_P(LawsTest, BytesAreTheSameWithAndWithoutWeightsAndLse) {
  AttentionContent content = Busy(Layout::kTokensHeads);
  const Answer both = Attend(content);
  content.options.return_weights = false;
  EXPECT_TRUE(Attend(content).SameBytes(both));
  content.options.return_lse = false;
  EXPECT_TRUE(Attend(content).SameBytes(both));
  content.options.return_weights = true;
  EXPECT_TRUE(Attend(content).SameBytes(both));
}

TEST_P(LawsTest, BytesAreTheSameRunAfterRun) {
  const AttentionContent content = Busy(Layout::kTokensHeads);
  EXPECT_TRUE(Attend(content).SameBytes(Attend(content)));
}

TEST_P(LawsTest, ItemsMayRunInAnyOrder) {
  const AttentionContent content = Busy(Layout::kTokensHeads);
  const Answer in_order = Attend(content);
  const AttentionCase attention_case(content);
  std::vector<WorkItem> items = kernel().Plan(attention_case.problem());
  std::shuffle(items.begin(), items.end(), std::mt19937(5));
  Scratch scratch;
  for (const WorkItem& item : items) {
    ASSERT_TRUE(kernel().Run(attention_case.problem(), item, attention_case.outputs(), scratch).ok());
  }
  EXPECT_TRUE(attention_case.Collect().SameBytes(in_order));
}

TEST_P(LawsTest, ItemsMayRunOnManyThreads) {
  const AttentionContent content = Busy(Layout::kTokensHeads);
  const Answer on_one = Attend(content);
  const AttentionCase attention_case(content);
  const std::vector<WorkItem> items = kernel().Plan(attention_case.problem());
  std::atomic<size_t> next = 0;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Scratch scratch;
      for (size_t n = next++; n < items.size(); n = next++) {
        if (!kernel().Run(attention_case.problem(), items[n], attention_case.outputs(), scratch).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(attention_case.Collect().SameBytes(on_one));
}

// A plan covers every row of every kv head once.
TEST_P(LawsTest, ItemsCoverEveryRowOnce) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kPacked}) {
    const AttentionContent content = Busy(layout);
    const AttentionCase attention_case(content);
    const AttentionProblem& problem = attention_case.problem();
    std::vector<std::vector<int>> covered;
    for (const Sequence& sequence : problem.sequences) {
      for (int64_t h = 0; h < problem.kv_heads; ++h) covered.emplace_back(sequence.q_len * problem.group(), 0);
    }
    for (const WorkItem& item : kernel().Plan(problem)) {
      for (int64_t h = item.kv_head; h < item.kv_head + item.kv_heads; ++h) {
        for (int64_t r = item.row_begin; r < item.row_end; ++r) ++covered[item.sequence * problem.kv_heads + h][r];
      }
      EXPECT_GE(item.flop, 0);
    }
    for (const std::vector<int>& rows : covered) {
      EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [](int times) { return times == 1; }));
    }
  }
}

TEST_P(LawsTest, PermutedKeysWithTheirMasksChangeNothingButRounding) {
  const AttentionContent content = Content({.heads = 4,
                                            .kv_heads = 2,
                                            .q_len = 40,
                                            .kv_len = 150,
                                            .keep = MaskSharing{},
                                            .bias = MaskSharing{.heads = true}});
  std::vector<int64_t> place(150);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), std::mt19937(3));
  const auto permute = [&place](const Array4& from, Array4& to, bool keys_last, bool back) {
    for (int64_t b = 0; b < from.shape[1]; ++b) {
      for (int64_t c = 0; c < from.shape[2]; ++c) {
        for (int64_t d = 0; d < from.shape[3]; ++d) {
          float& target = keys_last ? to.at(0, b, c, back ? d : place[d]) : to.at(0, b, place[c], d);
          target = from.at(0, b, c, keys_last && back ? place[d] : d);
        }
      }
    }
  };
  AttentionContent permuted = content;
  permute(content.key, permuted.key, /*keys_last=*/false, /*back=*/false);
  permute(content.value, permuted.value, /*keys_last=*/false, /*back=*/false);
  permute(*content.keep, *permuted.keep, /*keys_last=*/true, /*back=*/false);
  permute(*content.bias, *permuted.bias, /*keys_last=*/true, /*back=*/false);
  Answer answer = Attend(permuted);
  const Array4 weights = answer.weights;
  permute(weights, answer.weights, /*keys_last=*/true, /*back=*/true);
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(LawsTest, DoubledValuesDoubleTheOutput) {
  AttentionContent content = Busy(Layout::kTokensHeads);
  const Answer once = Attend(content);
  for (float& value : content.value.values) value *= 2;
  const Answer twice = Attend(content);
  for (size_t n = 0; n < once.output.values.size(); ++n) ASSERT_EQ(twice.output.values[n], 2 * once.output.values[n]);
}

TEST_P(LawsTest, SummedValuesSumTheOutputs) {
  AttentionContent a = Content({.q_len = 40, .kv_len = 150});
  AttentionContent b = a;
  AttentionContent sum = a;
  for (size_t n = 0; n < a.value.values.size(); ++n) {
    // Multiples of 1/8 up to 2: their sums are exact in every type.
    a.value.values[n] = static_cast<float>(static_cast<int>(n * 7 % 33) - 16) / 8;
    b.value.values[n] = static_cast<float>(static_cast<int>(n * 11 % 33) - 16) / 8;
    sum.value.values[n] = a.value.values[n] + b.value.values[n];
  }
  Answer answer = Attend(sum);
  const Answer of_a = Attend(a);
  const Answer of_b = Attend(b);
  // Three answers, each within one bound of its reference: 1e-5 of values up to 4, or two roundings of weights and one
  // of the output.
  const double bound = dtype() == DType::kF32 ? 3 * 4e-5 : dtype() == DType::kBf16 ? 3 * 4 * 0x1p-8 : 3 * 4 * 0x1p-11;
  for (size_t n = 0; n < answer.output.values.size(); ++n) {
    ASSERT_NEAR(answer.output.values[n], of_a.output.values[n] + of_b.output.values[n], bound) << n;
  }
}

// Keys [begin, end) of a content without masks.
AttentionContent KeysOnly(const AttentionContent& content, int64_t begin, int64_t end) {
  AttentionContent part = content;
  const AttentionOptions& o = content.options;
  part.options.kv_len = end - begin;
  part.key = Array4({o.batch, o.kv_heads, end - begin, o.qk_head_dim}, 0);
  part.value = Array4({o.batch, o.kv_heads, end - begin, o.v_head_dim}, 0);
  for (int64_t h = 0; h < o.kv_heads; ++h) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t d = 0; d < o.qk_head_dim; ++d) part.key.at(0, h, j - begin, d) = content.key.at(0, h, j, d);
      for (int64_t d = 0; d < o.v_head_dim; ++d) part.value.at(0, h, j - begin, d) = content.value.at(0, h, j, d);
    }
  }
  return part;
}

TEST_P(LawsTest, HalvesMergedByTheirLseEqualTheWhole) {
  AttentionContent content = Content({.heads = 4, .kv_heads = 2, .q_len = 20, .kv_len = 200, .return_weights = false});
  const Answer whole = Attend(content);
  content.options.sinks = {};
  const Answer first = Attend(KeysOnly(content, 0, 77));
  const Answer second = Attend(KeysOnly(content, 77, 200));
  // f32: three answers at 1e-5 of values up to about 4. The others: three outputs rounded, and weights rounded once.
  const double bound = dtype() == DType::kF32 ? 1e-4 : dtype() == DType::kBf16 ? 4 * 0x1p-7 : 4 * 0x1p-10;
  for (int64_t h = 0; h < 4; ++h) {
    for (int64_t i = 0; i < 20; ++i) {
      const double lse = std::log(std::exp(first.lse.at(0, h, i, 0)) + std::exp(second.lse.at(0, h, i, 0)));
      EXPECT_NEAR(whole.lse.at(0, h, i, 0), lse, 3e-5);
      for (int64_t d = 0; d < 8; ++d) {
        const double merged = std::exp(first.lse.at(0, h, i, 0) - lse) * first.output.at(0, h, i, d) +
                              std::exp(second.lse.at(0, h, i, 0) - lse) * second.output.at(0, h, i, d);
        EXPECT_NEAR(whole.output.at(0, h, i, d), merged, bound);
      }
    }
  }
}

TEST_P(LawsTest, TheBytesOfOneHeadDoNotDependOnOthersOfItsKvHead) {
  AttentionContent content = Content({.heads = 4, .kv_heads = 2, .q_len = 40, .kv_len = 150, .return_weights = false});
  const Answer before = Attend(content);
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t d = 0; d < 8; ++d) content.query.at(0, 1, i, d) = Round(dtype(), 3 * content.query.at(0, 1, i, d));
  }
  const Answer after = Attend(content);
  for (int64_t h : {0, 2, 3}) {
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t d = 0; d < 8; ++d) ASSERT_EQ(after.output.at(0, h, i, d), before.output.at(0, h, i, d));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPath, LawsTest, EveryPathAndType(), PathAndTypeName);
}  // namespace
}  // namespace triad
