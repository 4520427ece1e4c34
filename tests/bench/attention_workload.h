// What a row of the kernels' bench computes: a request with seeded contents, and whether its answer is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/attention_kernel.h"
#include "core/tensor/tensor.h"

namespace triad {

struct AttentionRow {
  const char* name;
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t heads = 8;
  int64_t kv_heads = 8;
  int64_t q_len = 2048;
  int64_t kv_len = 2048;
  int64_t head_dim = 64;
  bool causal = false;
  bool bias = false;          // additive, one per head
  bool keep = false;          // a mask per head that hides an eighth
  float query_gain = 1;       // spreads the logits
  bool tokens_heads = false;  // [batch, tokens, heads, dim], as most requests come; else [batch, heads, tokens, dim]
};

inline absl::Span<const std::byte> BytesOf(const Tensor& tensor) {
  return {tensor.data(), static_cast<size_t>(tensor.byte_size())};
}

// A row's request, and room for its answer.
class AttentionWorkload {
 public:
  explicit AttentionWorkload(const AttentionRow& row);

  const AttentionProblem& problem() const { return problem_; }
  const Tensor& key() const { return key_; }
  const Tensor& value() const { return value_; }
  std::vector<absl::Span<const std::byte>> KeysAndValues() const { return {BytesOf(key_), BytesOf(value_)}; }
  AttentionOutputs outputs() { return {.output = output_.data()}; }

  // Whether what outputs() holds is what the reference makes of some of the rows, give or take the type's rounding of
  // numbers about 1. Overwrites outputs().
  bool IsRight();

 private:
  Tensor query_, key_, value_, bias_, keep_, output_;
  AttentionProblem problem_;
};

}  // namespace triad
