// An attention test's content, laid out as a request and run.
#pragma once

#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "tests/support/attention_buffer.h"
#include "tests/support/attention_content.h"

namespace triad {

// What came back, in one order whatever the layout was, widened to float (exactly).
struct Answer {
  Array4 output;   // [batch, heads, q_len, v_head_dim]
  Array4 lse;      // [batch, heads, q_len, 1], or empty
  Array4 weights;  // [batch, heads, q_len, kv_len], or empty

  // Equal bits, of what both have.
  bool SameBytes(const Answer& other) const;
};

// The request of a content, in guarded memory at even and odd addresses, and room for its answer.
class AttentionCase {
 public:
  // Borrows `content`. Ends the test program when validation refuses the request: cases are legal.
  explicit AttentionCase(const AttentionContent& content);
  explicit AttentionCase(AttentionContent&&) = delete;
  AttentionCase(const AttentionCase&) = delete;
  AttentionCase& operator=(const AttentionCase&) = delete;

  const AttentionRequest& request() const { return request_; }
  const AttentionProblem& problem() const { return problem_; }
  AttentionOutputs outputs() const;
  // Makes every byte of the outputs `byte`, and returns them all. They begin as 0xFF, NaN.
  void FillOutputs(std::byte byte) const;
  std::vector<std::byte> OutputBytes() const;

  // What the outputs hold now. PACKED has no rows past a sequence's length: they read as padding, output 0 and lse
  // -inf.
  Answer Collect() const;

 private:
  TensorView Store(const Array4& tensor, DType dtype, const std::optional<std::vector<int64_t>>& lengths);
  TensorView StoreMask(const Array4& mask, DType dtype);

  const AttentionContent& content_;  // the caller's
  std::vector<GuardedBuffer> inputs_;
  AttentionRequest request_;
  AttentionProblem problem_;
  std::vector<GuardedBuffer> outputs_;  // output, lse, weights
};

// Lays `content` out, runs every item in the order of the plan, collects. A failure of the kernel fails the test. So
// does, where the kernel reads keys and values that lie in pieces, another answer than that for whole ones (computed
// into memory that held something else).
Answer RunContent(const AttentionKernel& kernel, const AttentionContent& content);

}  // namespace triad
