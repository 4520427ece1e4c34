#include "client/src/request_sizes.h"

#include <vector>

#include "gtest/gtest.h"

namespace triad::client {
namespace {

TEST(SaturatingProductTest, IsExactUntilItDoesNotFit) {
  EXPECT_EQ(SaturatingProduct({}), 1);
  EXPECT_EQ(SaturatingProduct({3, 5, 7}), 105);
  EXPECT_EQ(SaturatingProduct({kTooMany, 0}), 0);
  EXPECT_EQ(SaturatingProduct({kTooMany, 2}), kTooMany);
  EXPECT_EQ(SaturatingProduct({kTooMany, 2, 0}), kTooMany);
}

class RequestSizesTest : public ::testing::Test {
 protected:
  AttendRequest Attend(const Shape& shape, Layout layout) const {
    const TensorView tensor = TensorView::Float32(values_, shape);
    return {.query = tensor, .key = tensor, .value = tensor, .layout = layout};
  }

  const std::vector<float> values_ = std::vector<float>(2 * 3 * 5 * 7);
};

TEST_F(RequestSizesTest, AreReadByLayout) {
  const RequestSizes tokens_heads = SizesOf(Attend({2, 3, 5, 7}, Layout::kTokensHeads));
  EXPECT_EQ(tokens_heads.batch, 2);
  EXPECT_EQ(tokens_heads.tokens, 12) << "2 * (3 + 3)";
  EXPECT_EQ(tokens_heads.qk_head_dim, 7);
  EXPECT_EQ(tokens_heads.v_head_dim, 7);
  EXPECT_EQ(tokens_heads.reply_bytes, 840) << "2 * 3 * 5 * 7 * 4 bytes";
  const RequestSizes heads_tokens = SizesOf(Attend({2, 3, 5, 7}, Layout::kHeadsTokens));
  EXPECT_EQ(heads_tokens.tokens, 20) << "2 * (5 + 5)";
  EXPECT_EQ(heads_tokens.reply_bytes, 840);
}

TEST_F(RequestSizesTest, OfPackedSequencesCountThemByTheirLengths) {
  AttendRequest request = Attend({6, 5, 7}, Layout::kPacked);
  EXPECT_EQ(SizesOf(request).batch, 0) << "unknown: the server refuses what has no lengths";
  request.query_lengths = std::vector<int64_t>{2, 3, 1};
  request.key_lengths = std::vector<int64_t>{2, 4, 0};
  request.return_weights = true;
  const RequestSizes sizes = SizesOf(request);
  EXPECT_EQ(sizes.batch, 3);
  EXPECT_EQ(sizes.tokens, 12) << "6 + 6";
  EXPECT_EQ(sizes.weights_bytes, 480) << "5 heads * 6 queries * 4 keys * 4 bytes";
}

TEST_F(RequestSizesTest, OfTheAnswerAddUpItsParts) {
  AttendRequest request = Attend({2, 3, 5, 7}, Layout::kTokensHeads);
  request.return_lse = true;
  request.return_weights = true;
  const RequestSizes sizes = SizesOf(request);
  EXPECT_EQ(sizes.weights_bytes, 360) << "2 * 5 * 3 * 3 * 4 bytes";
  EXPECT_EQ(sizes.reply_bytes, 840 + 120 + 360);
}

TEST_F(RequestSizesTest, OfAWrongRankAreLeftToTheServer) {
  const RequestSizes sizes = SizesOf(Attend({210}, Layout::kTokensHeads));
  EXPECT_EQ(sizes.tokens, 0);
  EXPECT_EQ(sizes.reply_bytes, 0);
  EXPECT_EQ(SizesOf(ForwardRequest{.input = TensorView::Float32(values_, {210})}).tokens, 0);
}

TEST_F(RequestSizesTest, OfHiddenStatesCountTokensAsQueriesAndAsKeys) {
  ForwardRequest request{.input = TensorView::Float32(values_, {2, 3, 35}), .return_lse = true, .return_weights = true};
  const RequestSizes self = SizesOf(request);
  EXPECT_EQ(self.batch, 2);
  EXPECT_EQ(self.tokens, 12) << "2 * (3 + 3)";
  EXPECT_EQ(self.weights_bytes, 72) << "2 * 3 * 3 * 4 bytes, one head";
  EXPECT_EQ(self.reply_bytes, 96) << "and 2 * 3 * 4 of lse";
  request.context = TensorView::Float32(values_, {2, 5, 21});
  EXPECT_EQ(SizesOf(request).tokens, 16) << "2 * (3 + 5)";
  EXPECT_EQ(SizesOf(request).weights_bytes, 120) << "2 * 3 * 5 * 4 bytes";
}

TEST_F(RequestSizesTest, OfPackedHiddenStatesCountSequencesByTheirLengths) {
  ForwardRequest request{.input = TensorView::Float32(values_, {6, 35}), .layout = Layout::kPacked};
  request.lengths = std::vector<int64_t>{2, 4};
  request.return_weights = true;
  EXPECT_EQ(SizesOf(request).batch, 2);
  EXPECT_EQ(SizesOf(request).tokens, 12) << "6 + 6";
  EXPECT_EQ(SizesOf(request).weights_bytes, 96) << "6 rows * 4 keys * 4 bytes";
}

}  // namespace
}  // namespace triad::client
