#include "tests/bench/attention_workload.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/attention/reference_attention.h"
#include "core/attention/validate_attention.h"
#include "core/base/check.h"

namespace triad {
namespace {

Tensor Normal(DType dtype, Shape shape, float gain, std::mt19937_64& random) {
  Tensor tensor = *Tensor::Zeros(dtype, std::move(shape));
  std::normal_distribution<float> normal(0, gain);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    StoreElement(tensor.data() + i * ByteSize(dtype), dtype, normal(random));
  }
  return tensor;
}

Tensor KeepMask(Shape shape, std::mt19937_64& random) {
  Tensor tensor = *Tensor::Zeros(DType::kBool, std::move(shape));
  for (int64_t i = 0; i < tensor.byte_size(); ++i) tensor.data()[i] = std::byte{random() % 8 != 0};
  return tensor;
}

}  // namespace

AttentionWorkload::AttentionWorkload(const AttentionRow& row) {
  std::mt19937_64 random(20240229);
  const auto shape = [&](int64_t heads, int64_t tokens) -> Shape {
    if (row.tokens_heads) return {row.batch, tokens, heads, row.head_dim};
    return {row.batch, heads, tokens, row.head_dim};
  };
  const Shape key_shape = shape(row.kv_heads, row.kv_len);
  query_ = Normal(row.dtype, shape(row.heads, row.q_len), row.query_gain, random);
  key_ = Normal(row.dtype, key_shape, 1, random);
  value_ = Normal(row.dtype, key_shape, 1, random);
  AttentionRequest request;
  request.query = query_.view();
  request.key = key_.view();
  request.value = value_.view();
  request.layout = row.tokens_heads ? Layout::kTokensHeads : Layout::kHeadsTokens;
  request.causal = row.causal;
  request.alignment = Alignment::kBottomRight;
  const Shape mask_shape = {row.batch, row.heads, row.q_len, row.kv_len};
  if (row.bias) request.bias = (bias_ = Normal(DType::kF32, mask_shape, 1, random)).view();
  if (row.keep) request.keep = (keep_ = KeepMask(mask_shape, random)).view();
  absl::StatusOr<AttentionProblem> problem = ValidateAttention(request, AttentionLimits());
  TRIAD_CHECK(problem.ok(), "a bench's request is legal");
  problem_ = *std::move(problem);
  output_ = *Tensor::Zeros(row.dtype, problem_.output_shape);
}

bool AttentionWorkload::IsRight() {
  const Tensor computed = *Tensor::CopyFrom(output_.view());
  const ReferenceAttention reference;
  Scratch scratch;
  double worst = 0;
  const int64_t step = std::max<int64_t>(97, problem_.sequences.front().q_len / 16);  // the reference takes its time
  for (const WorkItem& item : reference.Plan(problem_)) {
    if (item.row_begin % step != 0) continue;
    TRIAD_CHECK(reference.Run(problem_, item, outputs(), scratch).ok(), "the reference does not fail");
  }
  const DType dtype = output_.dtype();
  for (int64_t i = 0; i < output_.byte_size(); i += ByteSize(dtype)) {
    worst = std::max(worst, std::fabs(double{LoadElement(output_.data() + i, dtype)} -
                                      double{LoadElement(computed.data() + i, dtype)}));
  }
  return worst <= (dtype == DType::kF32 ? 1e-3 : 3e-2);
}

}  // namespace triad
