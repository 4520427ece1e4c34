// What the fuzz targets of requests share: limits, what a refusal looks like, and room for an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/attention_problem.h"
#include "core/attention/attention_request.h"
#include "core/base/check.h"
#include "core/base/dims.h"
#include "core/tensor/tensor.h"

namespace triad {

// Small, so that an input of a few hundred bytes can pass any of them.
inline constexpr AttentionLimits kFuzzLimits = {.max_tokens_per_request = 1 << 10,
                                                .max_head_dim = 256,
                                                .max_weights_bytes = 1 << 18,
                                                .max_batch = 64,
                                                .max_message_bytes = 1 << 20};

// What is computed: a millisecond or so, sanitizers included. The server bounds the pairs for the same reason
// (CheckPlanSize).
inline bool IsSmall(const AttentionProblem& problem, double flop) {
  const std::optional<int64_t> pairs = CheckedMul(static_cast<int64_t>(problem.sequences.size()), problem.kv_heads);
  return pairs && *pairs <= 1 << 10 && flop <= 1e6;
}

inline void CheckRefusal(const absl::Status& status) {
  TRIAD_CHECK(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status), "a refusal blames the request");
  TRIAD_CHECK(!status.message().empty(), "a refusal says why");
}

// Buffers of exactly the sizes that a reply would have.
class RequestAnswer {
 public:
  RequestAnswer(const AttentionProblem& problem, const Shape& output_shape)
      : returns_lse_(problem.return_lse),
        returns_weights_(problem.return_weights),
        output_(Bytes(problem.dtype, output_shape)),
        lse_(Bytes(DType::kF32, problem.lse_shape) / sizeof(float)),
        weights_(Bytes(DType::kF32, problem.weights_shape) / sizeof(float)) {}

  AttentionOutputs outputs() {
    return {.output = output_.data(),
            .lse = returns_lse_ ? lse_.data() : nullptr,
            .weights = returns_weights_ ? weights_.data() : nullptr};
  }

 private:
  static size_t Bytes(DType dtype, const Shape& shape) {
    const std::optional<int64_t> bytes = TensorBytes(dtype, shape);
    TRIAD_CHECK(bytes && *bytes <= kFuzzLimits.max_message_bytes, "a reply is bounded");
    return static_cast<size_t>(*bytes);
  }

  bool returns_lse_;
  bool returns_weights_;
  std::vector<std::byte> output_;
  std::vector<float> lse_;
  std::vector<float> weights_;
};

}  // namespace triad
