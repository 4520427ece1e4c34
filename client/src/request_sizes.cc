#include "client/src/request_sizes.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace triad::client {
namespace {

constexpr int64_t kFloatBytes = 4;

int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kTooMany : sum;
}

int64_t Longest(const std::vector<int64_t>& lengths) {
  return lengths.empty() ? 0 : std::max<int64_t>(0, *std::max_element(lengths.begin(), lengths.end()));
}

// Queries and keys of one request. In kPacked q_len and kv_len are totals, and rows are not multiplied by the batch.
struct Tokens {
  bool packed = false;
  int64_t batch = 0;
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t longest_key = 0;  // last dimension of weights

  int64_t of_all_sequences() const { return SaturatingProduct({packed ? 1 : batch, SaturatingSum(q_len, kv_len)}); }
  int64_t query_rows() const { return SaturatingProduct({packed ? 1 : batch, q_len}); }
};

// `batch` is the first dimension, which kPacked reads from its lengths instead.
Tokens ReadTokens(Layout layout, int64_t batch, absl::Span<const int64_t> q_and_kv_len,
                  const std::optional<std::vector<int64_t>>& query_lengths,
                  const std::optional<std::vector<int64_t>>& key_lengths) {
  Tokens tokens{.packed = layout == Layout::kPacked,
                .batch = batch,
                .q_len = q_and_kv_len[0],
                .kv_len = q_and_kv_len[1],
                .longest_key = q_and_kv_len[1]};
  if (!tokens.packed) return tokens;
  tokens.batch = query_lengths ? static_cast<int64_t>(query_lengths->size()) : 0;
  if (key_lengths) tokens.longest_key = Longest(*key_lengths);
  return tokens;
}

// Adds what `heads` heads of lse and weights take.
void CountPerHead(int64_t heads, const Tokens& tokens, bool lse, bool weights, RequestSizes& sizes) {
  const int64_t rows = SaturatingProduct({heads, tokens.query_rows()});
  if (weights) sizes.weights_bytes = SaturatingProduct({rows, tokens.longest_key, kFloatBytes});
  sizes.reply_bytes = SaturatingSum(sizes.reply_bytes, sizes.weights_bytes);
  if (lse) sizes.reply_bytes = SaturatingSum(sizes.reply_bytes, SaturatingProduct({rows, kFloatBytes}));
}

}  // namespace

int64_t SaturatingProduct(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  bool zero = false;
  for (const int64_t size : sizes) {
    if (size == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, size, &product)) {
      return kTooMany;
    }
  }
  return zero ? 0 : product;
}

RequestSizes SizesOf(const AttendRequest& request) {
  const bool packed = request.layout == Layout::kPacked;
  const size_t rank = packed ? 3 : 4;
  for (const TensorView* tensor : {&request.query, &request.key, &request.value}) {
    if (tensor->shape.size() != rank) return {};
  }
  const size_t heads_axis = request.layout == Layout::kHeadsTokens ? 1 : rank - 2;
  const size_t tokens_axis = request.layout == Layout::kHeadsTokens ? 2 : rank - 3;
  const int64_t heads = request.query.shape[heads_axis];
  const Tokens tokens = ReadTokens(request.layout, request.query.shape[0],
                                   {request.query.shape[tokens_axis], request.key.shape[tokens_axis]},
                                   request.query_lengths, request.key_lengths);
  RequestSizes sizes{.batch = tokens.batch,
                     .tokens = tokens.of_all_sequences(),
                     .qk_head_dim = request.query.shape[rank - 1],
                     .v_head_dim = request.value.shape[rank - 1]};
  sizes.reply_bytes = SaturatingProduct({tokens.query_rows(), heads, sizes.v_head_dim, ByteSize(request.query.dtype)});
  CountPerHead(heads, tokens, request.return_lse, request.return_weights, sizes);
  return sizes;
}

RequestSizes SizesOf(const ForwardRequest& request) {
  const bool packed = request.layout == Layout::kPacked;
  const size_t rank = packed ? 2 : 3;
  const TensorView& context = request.context ? *request.context : request.input;
  if (request.input.shape.size() != rank || context.shape.size() != rank) return {};
  const size_t tokens_axis = rank - 2;
  const Tokens tokens =
      ReadTokens(request.layout, request.input.shape[0], {request.input.shape[tokens_axis], context.shape[tokens_axis]},
                 request.lengths, request.context ? request.context_lengths : request.lengths);
  RequestSizes sizes{.batch = tokens.batch, .tokens = tokens.of_all_sequences()};
  CountPerHead(/*heads=*/1, tokens, request.return_lse, request.return_weights, sizes);
  return sizes;
}

}  // namespace triad::client
