// So much work against so many keys that a kernel may compute them in chunks, on several threads, and merge what those
// leave.
#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kKeys = 9001;
constexpr int64_t kChunkEnd = 4096;  // where the fused kernel's first chunk ends

class LongKeysTest : public ConformanceTest {
 protected:
  // `q_len` queries of two heads that share a kv head, at the end of `kv_len` keys.
  AttentionOptions Options(int64_t q_len) const {
    return {.seed = static_cast<uint64_t>(q_len),
            .heads = 2,
            .q_len = q_len,
            .kv_len = kKeys,
            .qk_head_dim = 12,
            .v_head_dim = 20,
            .causal = true,
            .alignment = Alignment::kBottomRight};
  }

  // Runs `items`, perhaps on several threads; those that fail are counted.
  int Run(const AttentionCase& attention_case, const std::vector<WorkItem>& items, int threads) const {
    std::atomic<size_t> next = 0;
    std::atomic<int> failures = 0;
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&] {
        Scratch scratch;
        for (size_t n = next++; n < items.size(); n = next++) {
          if (!kernel().Run(attention_case.problem(), items[n], attention_case.outputs(), scratch).ok()) ++failures;
        }
      });
    }
    for (std::thread& thread : running) thread.join();
    return failures;
  }
};

TEST_P(LongKeysTest, FewAndMoreRowsAgree) {
  for (int64_t q_len : {1, 3, 20}) EXPECT_TRUE(Agrees(Content(Options(q_len))));
}

TEST_P(LongKeysTest, EveryOptionAgrees) {
  for (int64_t q_len : {2, 20}) {
    AttentionOptions options = Options(q_len);
    options.logit_softcap = 30;
    options.window = Window{.left = 6000};
    options.alibi = true;
    options.sinks = {0.5f, -1};
    options.keep = MaskSharing{.heads = true};
    options.bias = MaskSharing{};
    EXPECT_TRUE(Agrees(Content(options)));
    options.return_weights = false;
    options.keep_ratio = 0.001;
    EXPECT_TRUE(Agrees(Content(options)));
  }
}

// Chunks of which a few keys are seen, or none.
TEST_P(LongKeysTest, NarrowWindowsAgree) {
  for (int64_t left : {3, 2000}) {
    for (int64_t length : {kChunkEnd - 1, kChunkEnd, kChunkEnd + 1, int64_t{5000}}) {
      AttentionOptions options = Options(/*q_len=*/2);
      options.window = Window{.left = left};
      options.key_lengths = {{length}};
      AttentionContent content = Content(options);
      PoisonHidden(content);
      EXPECT_TRUE(Agrees(content)) << "left " << left << ", length " << length;
    }
  }
}

TEST_P(LongKeysTest, BytesDoNotDependOnOrderThreadsOrRepetition) {
  for (int64_t q_len : {2, 20}) {
    const AttentionContent content = Content(Options(q_len));
    const Answer in_order = Attend(content);
    const AttentionCase attention_case(content);
    std::vector<WorkItem> items = kernel().Plan(attention_case.problem());
    for (unsigned seed = 0; seed < 4; ++seed) {
      std::shuffle(items.begin(), items.end(), std::mt19937(seed));
      EXPECT_EQ(Run(attention_case, items, /*threads=*/1 + static_cast<int>(seed)), 0);
      EXPECT_TRUE(attention_case.Collect().SameBytes(in_order)) << "seed " << seed;
    }
  }
}

// In each chunk: hidden from the one query by keep, then seen.
TEST_P(LongKeysTest, ValuesThatAreNotFiniteAgree) {
  for (float odd : {std::numeric_limits<float>::quiet_NaN(), -kInfinity}) {
    for (int64_t key : {int64_t{5}, kChunkEnd, kKeys - 1}) {
      for (float keep : {0.0f, 1.0f}) {
        AttentionOptions options = Options(/*q_len=*/1);
        options.keep = MaskSharing{.heads = true};
        AttentionContent content = Content(options);
        content.value.at(0, 0, key, 3) = odd;
        content.keep->at(0, 0, 0, key) = keep;
        EXPECT_TRUE(Agrees(content)) << odd << " at " << key << ", keep " << keep;
      }
    }
  }
}

// Few rows of all kv heads are computed at once where heads lie together, and in parts of less than a chunk. What is no
// number is met by one of them.
TEST_P(LongKeysTest, HeadsTogetherAndApartAgreeByteForByte) {
  AttentionOptions options = Options(/*q_len=*/2);
  options.heads = 10;
  options.kv_heads = 5;
  options.qk_head_dim = 64;
  options.v_head_dim = 52;
  AttentionContent content = Content(options);
  for (float odd : {0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    content.value.at(0, 3, kChunkEnd + 700, 7) = odd;
    content.options.layout = Layout::kTokensHeads;
    const Answer together = Attend(content);
    EXPECT_TRUE(MatchesReference(content, together)) << odd;
    content.options.layout = Layout::kHeadsTokens;
    EXPECT_TRUE(Attend(content).SameBytes(together)) << odd;
  }
}

// Chunks whose sums are numbers, and their sum is none.
TEST_P(LongKeysTest, SumsPastTheRangeOfTheTypeAgree) {
  AttentionContent content = Content(Options(/*q_len=*/1));
  const float huge = Round(dtype(), dtype() == DType::kF16 ? 65504.0f : 3e38f);
  std::fill(content.key.values.begin(), content.key.values.end(), 0.0f);  // weights alike
  std::fill(content.value.values.begin(), content.value.values.end(), 0.0f);
  for (int64_t key : {int64_t{5}, kChunkEnd + 5, 2 * kChunkEnd + 5}) {
    for (int64_t d = 0; d < 20; ++d) content.value.at(0, 0, key, d) = huge;
  }
  EXPECT_TRUE(Agrees(content));
}

INSTANTIATE_TEST_SUITE_P(EveryPath, LongKeysTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
