#include "client/tools/bench/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "client/tools/tensor_bridge.h"

namespace triad::tools {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Elements [begin, begin + count) of a tensor, widened.
std::vector<float> Widen(const client::TensorView& tensor, int64_t begin, int64_t count) {
  const DType dtype = FromClient(tensor.dtype);
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = LoadElement(tensor.data.data() + (begin + i) * ByteSize(dtype), dtype);
  }
  return values;
}

float Round(DType dtype, float value) {
  float bytes = 0;
  StoreElement(&bytes, dtype, value);
  return LoadElement(&bytes, dtype);
}

const float* QueryOf(const AttentionRows& r, int64_t row, int64_t head) {
  return r.query.data() + (row * r.heads + head) * r.qk_head_dim;
}
const float* KeyOf(const AttentionRows& r, int64_t column, int64_t head) {
  return r.key.data() + (column * r.kv_heads + head / (r.heads / r.kv_heads)) * r.qk_head_dim;
}
const float* ValueOf(const AttentionRows& r, int64_t column, int64_t head) {
  return r.value.data() + (column * r.kv_heads + head / (r.heads / r.kv_heads)) * r.v_head_dim;
}

float ScaleOf(const AttentionRows& r) { return static_cast<float>(1 / std::sqrt(static_cast<double>(r.qk_head_dim))); }

// The weights of one row; hidden keys have 0.
std::vector<float> NaiveWeights(const AttentionRows& r, int64_t row, int64_t head) {
  std::vector<float> weights(static_cast<size_t>(r.kv_len), kNothing);
  float largest = kNothing;
  for (int64_t j = 0; j < r.kv_len; ++j) {
    if (!r.IsVisible(row, j)) continue;
    float dot = 0;
    for (int64_t d = 0; d < r.qk_head_dim; ++d) dot += QueryOf(r, row, head)[d] * KeyOf(r, j, head)[d];
    weights[static_cast<size_t>(j)] = ScaleOf(r) * dot;
    largest = std::max(largest, ScaleOf(r) * dot);
  }
  if (largest == kNothing) return std::vector<float>(static_cast<size_t>(r.kv_len), 0.0f);
  float sum = 0;
  for (float& weight : weights) sum += weight = std::exp(weight - largest);
  for (float& weight : weights) weight /= sum;
  return weights;
}

// The distance from |value| to the next larger number of a half-width type.
double Ulp(DType dtype, double value) {
  const int fraction_bits = dtype == DType::kF16 ? 10 : 7;
  const int smallest_exponent = dtype == DType::kF16 ? -14 : -126;
  const int exponent = value == 0 ? smallest_exponent : std::max(std::ilogb(value), smallest_exponent);
  return std::ldexp(1.0, exponent - fraction_bits);
}

double LargestAbs(const float* values, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(static_cast<double>(values[i])));
  return largest;
}

double LargestError(const float* values, const float* truth, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double error = std::abs(static_cast<double>(values[i]) - truth[i]);
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

AttentionRows LastRows(const client::AttendRequest& request, int64_t sequence, int64_t rows) {
  const client::Shape& q = request.query.shape;
  const client::Shape& k = request.key.shape;
  AttentionRows result{.rows = rows,
                       .kv_len = k[1],
                       .heads = q[2],
                       .kv_heads = k[2],
                       .qk_head_dim = q[3],
                       .v_head_dim = request.value.shape[3],
                       .causal = request.causal};
  const int64_t first = sequence * q[1] + q[1] - rows;
  result.query = Widen(request.query, first * q[2] * q[3], rows * q[2] * q[3]);
  result.key = Widen(request.key, sequence * k[1] * k[2] * k[3], k[1] * k[2] * k[3]);
  const int64_t value_size = k[1] * k[2] * result.v_head_dim;
  result.value = Widen(request.value, sequence * value_size, value_size);
  if (request.keep) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(request.keep->data.data());
    result.keep.assign(bytes + (q[1] - rows) * k[1], bytes + q[1] * k[1]);
  }
  return result;
}

client::AttendRequest ReferenceRequest(const AttentionRows& r) {
  client::AttendRequest request;
  request.query = client::TensorView::Float32(r.query, {1, r.rows, r.heads, r.qk_head_dim});
  request.key = client::TensorView::Float32(r.key, {1, r.kv_len, r.kv_heads, r.qk_head_dim});
  request.value = client::TensorView::Float32(r.value, {1, r.kv_len, r.kv_heads, r.v_head_dim});
  request.causal = r.causal;
  if (r.causal) request.alignment = client::Alignment::kBottomRight;
  if (!r.keep.empty()) request.keep = client::TensorView::Bool(r.keep, {1, 1, r.rows, r.kv_len});
  request.kernel = client::Kernel::kReference;
  return request;
}

std::vector<float> NaiveOutput(const AttentionRows& r, DType dtype) {
  std::vector<float> output;
  output.reserve(static_cast<size_t>(r.rows * r.heads * r.v_head_dim));
  for (int64_t row = 0; row < r.rows; ++row) {
    for (int64_t head = 0; head < r.heads; ++head) {
      const std::vector<float> weights = NaiveWeights(r, row, head);
      std::vector<float> sums(static_cast<size_t>(r.v_head_dim));
      for (int64_t j = 0; j < r.kv_len; ++j) {
        const float weight = Round(dtype, weights[static_cast<size_t>(j)]);
        for (size_t d = 0; d < sums.size(); ++d) sums[d] += weight * ValueOf(r, j, head)[d];
      }
      for (const float sum : sums) output.push_back(Round(dtype, sum));
    }
  }
  return output;
}

double LargestLogit(const AttentionRows& r) {
  double largest = 0;
  for (int64_t row = 0; row < r.rows; ++row) {
    for (int64_t head = 0; head < r.heads; ++head) {
      for (int64_t j = 0; j < r.kv_len; ++j) {
        if (!r.IsVisible(row, j)) continue;
        double terms = 0;
        for (int64_t d = 0; d < r.qk_head_dim; ++d) {
          terms += std::abs(static_cast<double>(QueryOf(r, row, head)[d]) * KeyOf(r, j, head)[d]);
        }
        largest = std::max(largest, terms * ScaleOf(r));
      }
    }
  }
  return largest;
}

double ExcessError(const AttentionRows& r, DType dtype, const std::vector<float>& output,
                   const std::vector<float>& truth) {
  if (output.size() != truth.size()) return std::numeric_limits<double>::infinity();
  if (dtype == DType::kF32) {
    const double bound = 1e-5 * std::max(1.0, LargestAbs(r.value.data(), static_cast<int64_t>(r.value.size()))) *
                         std::max(1.0, LargestLogit(r) / 16);
    return LargestError(output.data(), truth.data(), static_cast<int64_t>(truth.size())) / bound;
  }
  const std::vector<float> naive = NaiveOutput(r, dtype);
  const double naive_error = LargestError(naive.data(), truth.data(), static_cast<int64_t>(truth.size()));
  double worst = 0;
  for (int64_t at = 0; at < static_cast<int64_t>(truth.size()); at += r.v_head_dim) {
    const double bound = 2 * naive_error + Ulp(dtype, LargestAbs(truth.data() + at, r.v_head_dim));
    worst = std::max(worst, LargestError(output.data() + at, truth.data() + at, r.v_head_dim) / bound);
  }
  return worst;
}

}  // namespace triad::tools
