// Every byte of an answer is written, whatever the memory held: a reply is made without being filled first, and what
// was left in it would be another client's.
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

class WrittenTest : public ConformanceTest {
 protected:
  void ExpectEveryByteIsWritten(AttentionOptions options) const {
    const AttentionContent content = Content(options);
    SCOPED_TRACE(ToString(content.options));
    const AttentionCase attention_case(content);
    std::vector<std::byte> bytes[2];
    for (const bool is_second : {false, true}) {
      attention_case.FillOutputs(is_second ? std::byte{0xA5} : std::byte{0x5A});  // they differ in every bit
      Scratch scratch;
      const absl::Status status = RunAll(kernel(), attention_case.problem(), attention_case.outputs(), scratch);
      ASSERT_TRUE(status.ok()) << status;
      bytes[is_second] = attention_case.OutputBytes();
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }

  // In every layout, for rows that are few (one group of rows) and many (tiles and their ends), keys that are few and
  // many (blocks, and chunks whose parts are merged).
  void ExpectEverywhere(AttentionOptions options) const {
    for (const Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
      options.layout = layout;
      for (const int64_t q_len : {1, 3, 37, 100}) {
        for (const int64_t kv_len : {0, 1, 130, 4200}) {
          if (q_len > 3 && kv_len == 4200) continue;  // slow, and each has been
          options.q_len = q_len;
          options.kv_len = kv_len;
          ExpectEveryByteIsWritten(options);
        }
      }
    }
  }
};

TEST_P(WrittenTest, WhenAllIsVisible) { ExpectEverywhere({.batch = 2, .heads = 4, .kv_heads = 2}); }

TEST_P(WrittenTest, WhenLittleIsVisible) {
  ExpectEverywhere({.heads = 2, .causal = true, .alignment = Alignment::kTopLeft, .window = Window{.left = 2}});
  ExpectEverywhere({.heads = 2, .keep = MaskSharing{.queries = true}, .keep_ratio = 0.01});
  ExpectEverywhere({.heads = 2, .keep = MaskSharing{}, .keep_ratio = 0});
  ExpectEverywhere({.heads = 2, .bias = MaskSharing{.heads = true}, .hiding_bias_ratio = 1});
}

TEST_P(WrittenTest, PastLengths) {
  for (const Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    for (const int64_t q_len : {2, 40}) {
      for (const int64_t kv_len : {3, 140, 4200}) {
        ExpectEveryByteIsWritten({.layout = layout,
                                  .batch = 4,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .q_len = q_len,
                                  .kv_len = kv_len,
                                  .query_lengths = {{q_len, 0, 1, q_len - 1}},
                                  .key_lengths = {{kv_len, kv_len - 1, 0, 2}}});
      }
    }
  }
}

TEST_P(WrittenTest, OfNothing) {
  ExpectEveryByteIsWritten({.batch = 0, .q_len = 5, .kv_len = 5});
  ExpectEveryByteIsWritten({.q_len = 0, .kv_len = 5});
}

// Widths that are no multiple of a vector.
TEST_P(WrittenTest, OfOddWidths) {
  for (const int64_t v_head_dim : {1, 7, 33, 65, 129}) {
    for (const int64_t q_len : {1, 5, 70}) {
      ExpectEveryByteIsWritten({.heads = 3, .q_len = q_len, .kv_len = 33, .qk_head_dim = 5, .v_head_dim = v_head_dim});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPath, WrittenTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
