#include "tests/support/attention_case.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "core/attention/validate_attention.h"
#include "core/base/check.h"
#include "gtest/gtest.h"
#include "tests/support/cut_pieces.h"

namespace triad {
namespace {

bool SameBits(const Array4& a, const Array4& b) {
  return a.empty() || b.empty() ||
         (a.shape == b.shape && std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0);
}

int64_t ByteCount(DType dtype, const Shape& shape) {
  const std::optional<int64_t> bytes = TensorBytes(dtype, shape);
  TRIAD_CHECK(bytes.has_value(), "test tensors are small");
  return *bytes;
}

// Even and odd addresses in turn: a request's bytes lie anywhere.
GuardedBuffer MakeBuffer(int64_t bytes, size_t turn) { return GuardedBuffer(bytes, /*slack=*/turn % 2 == 0 ? 1 : 0); }

float LoadF32(const GuardedBuffer& buffer, int64_t element) {
  return LoadElement(buffer.data() + element * ByteSize(DType::kF32), DType::kF32);
}

// The options' lengths, which PACKED cannot do without.
std::optional<std::vector<int64_t>> LengthsOf(const AttentionOptions& options,
                                              const std::optional<std::vector<int64_t>>& lengths, int64_t full) {
  if (lengths || options.layout != Layout::kPacked) return lengths;
  return std::vector<int64_t>(static_cast<size_t>(options.batch), full);
}

}  // namespace

bool Answer::SameBytes(const Answer& other) const {
  return SameBits(output, other.output) && SameBits(lse, other.lse) && SameBits(weights, other.weights);
}

AttentionCase::AttentionCase(const AttentionContent& content) : content_(content) {
  const AttentionOptions& o = content.options;
  request_.layout = o.layout;
  request_.scale = o.scale;
  request_.logit_softcap = o.logit_softcap;
  request_.causal = o.causal;
  request_.alignment = o.alignment;
  request_.window = o.window;
  request_.alibi = o.alibi;
  request_.alibi_slopes = o.alibi_slopes;
  request_.sinks = o.sinks;
  request_.query_lengths = LengthsOf(o, o.query_lengths, o.q_len);
  request_.key_lengths = LengthsOf(o, o.key_lengths, o.kv_len);
  request_.return_lse = o.return_lse;
  request_.return_weights = o.return_weights;
  request_.query = Store(content.query, o.dtype, request_.query_lengths);
  request_.key = Store(content.key, o.dtype, request_.key_lengths);
  request_.value = Store(content.value, o.dtype, request_.key_lengths);
  if (content.keep) request_.keep = StoreMask(*content.keep, DType::kBool);
  if (content.bias) request_.bias = StoreMask(*content.bias, o.bias_dtype);

  absl::StatusOr<AttentionProblem> problem = ValidateAttention(request_, AttentionLimits{});
  if (!problem.ok()) std::fprintf(stderr, "%s\n", ToString(o).c_str());
  TRIAD_CHECK(problem.ok(), std::string(problem.status().message()).c_str());
  problem_ = *std::move(problem);
  outputs_.push_back(MakeBuffer(ByteCount(o.dtype, problem_.output_shape), 0));
  outputs_.push_back(MakeBuffer(o.return_lse ? ByteCount(DType::kF32, problem_.lse_shape) : 0, 1));
  outputs_.push_back(MakeBuffer(o.return_weights ? ByteCount(DType::kF32, problem_.weights_shape) : 0, 2));
}

// `tensor`: [batch, heads, tokens, dim]. PACKED takes the first lengths[b] tokens of each sequence.
TensorView AttentionCase::Store(const Array4& tensor, DType dtype, const std::optional<std::vector<int64_t>>& lengths) {
  const auto [batch, heads, tokens, dim] = tensor.shape;
  const Layout layout = content_.options.layout;
  int64_t total = 0;
  if (layout == Layout::kPacked) {
    for (int64_t length : *lengths) total += length;
  }
  TensorView view = {.dtype = dtype};
  if (layout == Layout::kTokensHeads) view.shape = {batch, tokens, heads, dim};
  if (layout == Layout::kHeadsTokens) view.shape = {batch, heads, tokens, dim};
  if (layout == Layout::kPacked) view.shape = {total, heads, dim};
  inputs_.push_back(MakeBuffer(ByteCount(dtype, view.shape), inputs_.size()));
  view.data = inputs_.back().data();

  std::byte* address = inputs_.back().data();
  for (int64_t b = 0; b < batch; ++b) {
    const bool heads_first = layout == Layout::kHeadsTokens;
    const int64_t count = layout == Layout::kPacked ? (*lengths)[b] : tokens;
    for (int64_t outer = 0; outer < (heads_first ? heads : count); ++outer) {
      for (int64_t inner = 0; inner < (heads_first ? count : heads); ++inner) {
        const float* elements = heads_first ? tensor.row(b, outer, inner) : tensor.row(b, inner, outer);
        for (int64_t d = 0; d < dim; ++d, address += ByteSize(dtype)) StoreElement(address, dtype, elements[d]);
      }
    }
  }
  return view;
}

// `mask`: [batch|1, heads|1, q_len|1, kv_len]. PACKED puts the queries of all sequences one after another.
TensorView AttentionCase::StoreMask(const Array4& mask, DType dtype) {
  const AttentionOptions& o = content_.options;
  const auto [batch, heads, queries, columns] = mask.shape;
  TensorView view = {.dtype = dtype, .shape = {batch, heads, queries, columns}};
  struct RowOfMask {
    int64_t b, h, i;
  };
  std::vector<RowOfMask> rows;
  int64_t width = columns;
  if (o.layout != Layout::kPacked) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < queries; ++i) rows.push_back({b, h, i});
      }
    }
  } else {
    width = 0;
    for (int64_t length : *request_.key_lengths) width = std::max(width, length);
    const bool is_shared = batch == 1 && queries == 1;
    for (int64_t h = 0; h < heads; ++h) {
      if (is_shared) rows.push_back({0, h, 0});
      for (int64_t b = 0; b < o.batch && !is_shared; ++b) {
        for (int64_t i = 0; i < (*request_.query_lengths)[b]; ++i) rows.push_back({b, h, i});
      }
    }
    view.shape = {heads, heads == 0 ? 0 : static_cast<int64_t>(rows.size()) / heads, width};
  }
  inputs_.push_back(MakeBuffer(ByteCount(dtype, view.shape), inputs_.size()));
  std::byte* address = inputs_.back().data();
  view.data = address;
  for (const RowOfMask& row : rows) {
    for (int64_t j = 0; j < width; ++j, address += ByteSize(dtype)) {
      const float entry = mask.Shared(row.b, row.h, row.i, j);
      if (dtype == DType::kBool) {
        *address = static_cast<std::byte>(entry);
      } else {
        StoreElement(address, dtype, entry);
      }
    }
  }
  return view;
}

AttentionOutputs AttentionCase::outputs() const {
  const AttentionOptions& o = content_.options;
  return {.output = outputs_[0].data(),
          .lse = o.return_lse ? reinterpret_cast<float*>(outputs_[1].data()) : nullptr,
          .weights = o.return_weights ? reinterpret_cast<float*>(outputs_[2].data()) : nullptr};
}

void AttentionCase::FillOutputs(std::byte byte) const {
  for (const GuardedBuffer& buffer : outputs_) std::fill_n(buffer.data(), buffer.byte_size(), byte);
}

std::vector<std::byte> AttentionCase::OutputBytes() const {
  std::vector<std::byte> bytes;
  for (const GuardedBuffer& buffer : outputs_) {
    bytes.insert(bytes.end(), buffer.data(), buffer.data() + buffer.byte_size());
  }
  return bytes;
}

Answer AttentionCase::Collect() const {
  const AttentionOptions& o = content_.options;
  Answer answer;
  answer.output = Array4({o.batch, o.heads, o.q_len, o.v_head_dim}, 0);
  if (o.return_lse) answer.lse = Array4({o.batch, o.heads, o.q_len, 1}, -std::numeric_limits<float>::infinity());
  if (o.return_weights) answer.weights = Array4({o.batch, o.heads, o.q_len, o.kv_len}, 0);

  const bool packed = o.layout == Layout::kPacked;
  const bool heads_first = o.layout == Layout::kHeadsTokens;
  const int64_t columns = packed && o.return_weights ? problem_.weights_shape[2] : o.kv_len;
  const int64_t total = packed ? problem_.output_shape[0] : 0;
  int64_t first = 0;  // PACKED: query of this sequence, among all
  for (int64_t b = 0; b < o.batch; ++b) {
    const int64_t rows = packed ? content_.query_length(b) : o.q_len;
    for (int64_t h = 0; h < o.heads; ++h) {
      for (int64_t i = 0; i < rows; ++i) {
        // Counts of whole heads and of rows before this one, in the output's order and in that of lse and weights.
        const int64_t token = packed ? first + i : b * o.q_len + i;
        const int64_t output = heads_first ? (b * o.heads + h) * o.q_len + i : token * o.heads + h;
        const int64_t row = packed ? h * total + token : (b * o.heads + h) * o.q_len + i;
        float* elements = answer.output.row(b, h, i);
        for (int64_t d = 0; d < o.v_head_dim; ++d) {
          elements[d] = LoadElement(outputs_[0].data() + (output * o.v_head_dim + d) * ByteSize(o.dtype), o.dtype);
        }
        if (o.return_lse) answer.lse.at(b, h, i, 0) = LoadF32(outputs_[1], row);
        if (!o.return_weights) continue;
        float* weights = answer.weights.row(b, h, i);
        for (int64_t j = 0; j < columns; ++j) weights[j] = LoadF32(outputs_[2], row * columns + j);
      }
    }
    first += rows;
  }
  return answer;
}

namespace {

// A copy of the keys or values of a problem, in pieces of all sizes.
CutPieces Cut(const TensorView& whole, std::mt19937_64& random) {
  return CutPieces(whole.data, ByteCount(whole.dtype, whole.shape),
                   [&] { return 1 + static_cast<int64_t>(random() % (uint64_t{1} << (random() % 13))); });
}

Answer Run(const AttentionKernel& kernel, const AttentionProblem& problem, const AttentionCase& attention_case) {
  Scratch scratch;
  const absl::Status status = RunAll(kernel, problem, attention_case.outputs(), scratch);
  EXPECT_TRUE(status.ok()) << status;
  return attention_case.Collect();
}

}  // namespace

Answer RunContent(const AttentionKernel& kernel, const AttentionContent& content) {
  SCOPED_TRACE(ToString(content.options));
  const AttentionCase attention_case(content);
  const Answer answer = Run(kernel, attention_case.problem(), attention_case);
  if (!kernel.ReadsPieces(attention_case.problem())) return answer;
  std::mt19937_64 random(20261130);
  const CutPieces keys = Cut(attention_case.request().key, random);
  const CutPieces values = Cut(attention_case.request().value, random);
  AttentionProblem in_pieces = attention_case.problem();
  in_pieces.key.data = in_pieces.value.data = nullptr;
  in_pieces.key.pieces = &keys.get();
  in_pieces.value.pieces = &values.get();
  attention_case.FillOutputs(std::byte{0x3F});
  EXPECT_TRUE(Run(kernel, in_pieces, attention_case).SameBytes(answer)) << "keys and values in pieces";
  return answer;
}

}  // namespace triad
