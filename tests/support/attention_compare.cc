#include "tests/support/attention_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/attention/reference_attention.h"

namespace triad {
namespace {

// -- Walking a content -----------------------------------------------------------------------------------------------

// One query of one head.
struct RowIndex {
  int64_t b = 0;
  int64_t h = 0;
  int64_t i = 0;
};

template <class Visit>
void ForEachRow(const AttentionOptions& options, Visit visit) {
  for (int64_t b = 0; b < options.batch; ++b) {
    for (int64_t h = 0; h < options.heads; ++h) {
      for (int64_t i = 0; i < options.q_len; ++i) visit(RowIndex{b, h, i});
    }
  }
}

int64_t KvHead(const AttentionOptions& options, int64_t h) { return h / (options.heads / options.kv_heads); }

float ScaleOf(const AttentionOptions& options) {
  return options.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(options.qk_head_dim))));
}

float SlopeOf(const AttentionProblem& problem, int64_t h) {
  return problem.alibi_slopes.empty() ? 0 : problem.alibi_slopes[h];
}

// -- The naive computation -------------------------------------------------------------------------------------------

float NaiveScore(const AttentionContent& content, float slope, const RowIndex& row, int64_t j) {
  const AttentionOptions& o = content.options;
  const float* query = content.query.row(row.b, row.h, row.i);
  const float* key = content.key.row(row.b, KvHead(o, row.h), j);
  float dot = 0;
  for (int64_t d = 0; d < o.qk_head_dim; ++d) dot += query[d] * key[d];
  float score = ScaleOf(o) * dot;
  if (o.logit_softcap > 0) score = o.logit_softcap * std::tanh(score / o.logit_softcap);
  if (content.bias) score += content.bias->Shared(row.b, row.h, row.i, j);
  return score - slope * std::abs(static_cast<float>(content.position(row.b, row.i) - j));
}

void NaiveRow(const AttentionContent& content, float slope, const RowIndex& row, Array4& output) {
  const AttentionOptions& o = content.options;
  std::vector<int64_t> keys;
  std::vector<float> scores;
  for (int64_t j = 0; j < o.kv_len; ++j) {
    if (!IsVisible(content, row.b, row.h, row.i, j)) continue;
    keys.push_back(j);
    scores.push_back(NaiveScore(content, slope, row, j));
  }
  float sink = -std::numeric_limits<float>::infinity();
  if (!o.sinks.empty()) sink = o.sinks[row.h];
  float largest = sink;
  for (float score : scores) largest = std::max(largest, score);
  float denominator = std::exp(sink - largest);
  for (float score : scores) denominator += std::exp(score - largest);
  std::vector<float> sums(static_cast<size_t>(o.v_head_dim), 0.0f);
  for (size_t n = 0; n < keys.size(); ++n) {
    const float weight = Round(o.dtype, std::exp(scores[n] - largest) / denominator);
    const float* value = content.value.row(row.b, KvHead(o, row.h), keys[n]);
    for (int64_t d = 0; d < o.v_head_dim; ++d) sums[d] += weight * value[d];
  }
  for (int64_t d = 0; d < o.v_head_dim; ++d) output.at(row.b, row.h, row.i, d) = Round(o.dtype, sums[d]);
}

// -- Comparing -------------------------------------------------------------------------------------------------------

// The distance from |value| to the next larger number of the type.
double Ulp(DType dtype, double value) {
  const int fraction_bits = dtype == DType::kF32 ? 23 : dtype == DType::kF16 ? 10 : 7;
  const int smallest_exponent = dtype == DType::kF16 ? -14 : -126;
  const int exponent = value == 0 ? smallest_exponent : std::max(std::ilogb(value), smallest_exponent);
  return std::ldexp(1.0, exponent - fraction_bits);
}

// The largest |value| of a tensor that is finite.
double LargestFinite(const std::vector<float>& values) {
  double largest = 0;
  for (float value : values) {
    if (std::isfinite(value)) largest = std::max<double>(largest, std::abs(value));
  }
  return largest;
}

// The largest error of `values` where both are finite.
double LargestError(const Array4& values, const Array4& truth) {
  double largest = 0;
  for (size_t n = 0; n < truth.values.size(); ++n) {
    const double error = std::abs(static_cast<double>(values.values[n]) - truth.values[n]);
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  return largest;
}

// `error` relative to what is allowed; infinite when only one of the two is finite, or they are different infinities.
double Excess(float got, float truth, double allowed) {
  if (std::isnan(got) && std::isnan(truth)) return 0;
  if (got == truth) return 0;
  if (!std::isfinite(got) || !std::isfinite(truth)) return std::numeric_limits<double>::infinity();
  return std::abs(static_cast<double>(got) - truth) / allowed;
}

std::string RowOf(const Array4& tensor, const RowIndex& row) {
  constexpr int64_t kShown = 24;
  std::ostringstream text;
  for (int64_t d = 0; d < std::min(tensor.shape[3], kShown); ++d) text << " " << tensor.at(row.b, row.h, row.i, d);
  if (tensor.shape[3] > kShown) text << " ...";
  return text.str();
}

// Compares tensors of rows; `allowed(row)` is the largest error in it. The message names the worst element.
template <class Allowed>
testing::AssertionResult CompareRows(const AttentionOptions& options, absl::string_view name, const Array4& got,
                                     const Array4& truth, Allowed allowed) {
  double worst = 0;
  RowIndex worst_row;
  int64_t worst_column = 0;
  ForEachRow(options, [&](const RowIndex& row) {
    const double bound = allowed(row);
    const float* got_row = got.row(row.b, row.h, row.i);
    const float* truth_row = truth.row(row.b, row.h, row.i);
    for (int64_t d = 0; d < truth.shape[3]; ++d) {
      const double excess = Excess(got_row[d], truth_row[d], bound);
      if (excess <= worst) continue;
      worst = excess;
      worst_row = row;
      worst_column = d;
    }
  });
  if (worst <= 1) return testing::AssertionSuccess();
  const auto [b, h, i] = worst_row;
  return testing::AssertionFailure() << name << " of sequence " << b << " head " << h << " query " << i << " ["
                                     << worst_column << "] is " << got.at(b, h, i, worst_column) << ", reference "
                                     << truth.at(b, h, i, worst_column) << ": " << worst << " times the bound "
                                     << allowed(worst_row) << "\n  got      " << RowOf(got, worst_row)
                                     << "\n  reference" << RowOf(truth, worst_row) << "\n";
}

testing::AssertionResult CompareOutput(const AttentionContent& content, const Answer& answer, const Answer& truth,
                                       double slack) {
  const DType dtype = content.options.dtype;
  if (dtype == DType::kF32) {
    const double bound = 1e-5 * std::max(1.0, LargestFinite(content.value.values)) * slack;
    return CompareRows(content.options, "output", answer.output, truth.output, [=](const RowIndex&) { return bound; });
  }
  const double naive_error = LargestError(NaiveOutput(content), truth.output);
  return CompareRows(content.options, "output", answer.output, truth.output, [&](const RowIndex& row) {
    double largest = 0;
    const float* values = truth.output.row(row.b, row.h, row.i);
    for (int64_t d = 0; d < truth.output.shape[3]; ++d) {
      const double value = std::abs(values[d]);
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    return 2 * naive_error + Ulp(dtype, largest);
  });
}

// Sum of squared errors over sum of squares, of f32 outputs; 0 when the reference is all 0 or not finite.
double NormalisedError(const Array4& got, const Array4& truth) {
  double errors = 0;
  double squares = 0;
  for (size_t n = 0; n < truth.values.size(); ++n) {
    if (!std::isfinite(truth.values[n])) continue;
    const double error = static_cast<double>(got.values[n]) - truth.values[n];
    errors += error * error;
    squares += static_cast<double>(truth.values[n]) * truth.values[n];
  }
  return squares > 0 ? errors / squares : 0;
}

// Hidden weights are exactly 0, and rows that see something and have no sink add up to 1.
testing::AssertionResult CheckWeightRows(const AttentionContent& content, const Answer& answer, const Answer& truth) {
  testing::AssertionResult result = testing::AssertionSuccess();
  ForEachRow(content.options, [&](const RowIndex& row) {
    double sum = 0;
    const float* weights = answer.weights.row(row.b, row.h, row.i);
    for (int64_t j = 0; j < content.options.kv_len; ++j) {
      const float weight = weights[j];
      sum += weight;
      if (weight == 0 || IsVisible(content, row.b, row.h, row.i, j) || !result) continue;
      result = testing::AssertionFailure() << "weight of hidden key " << j << " is " << weight << " for sequence "
                                           << row.b << " head " << row.h << " query " << row.i << "\n";
    }
    const bool adds_up = content.options.sinks.empty() && std::isfinite(truth.lse.at(row.b, row.h, row.i, 0));
    if (!adds_up || std::abs(sum - 1) <= 1e-5 || !result) return;
    result = testing::AssertionFailure() << "weights of sequence " << row.b << " head " << row.h << " query " << row.i
                                         << " add up to " << sum << "\n";
  });
  return result;
}

}  // namespace

Answer ReferenceAnswer(const AttentionContent& content) {
  AttentionContent widened = content;
  widened.options.dtype = DType::kF32;  // exact: the contents are rounded to their type already
  widened.options.return_lse = true;
  widened.options.return_weights = true;
  return RunContent(ReferenceAttention(), widened);
}

Array4 NaiveOutput(const AttentionContent& content) {
  const AttentionOptions& o = content.options;
  const AttentionCase attention_case(content);
  Array4 output({o.batch, o.heads, o.q_len, o.v_head_dim}, 0);
  ForEachRow(o, [&](const RowIndex& row) { NaiveRow(content, SlopeOf(attention_case.problem(), row.h), row, output); });
  return output;
}

double LargestLogitTerms(const AttentionContent& content) {
  const AttentionOptions& o = content.options;
  const AttentionCase attention_case(content);
  double largest = 0;
  ForEachRow(o, [&](const RowIndex& row) {
    const float* query = content.query.row(row.b, row.h, row.i);
    for (int64_t j = 0; j < o.kv_len; ++j) {
      if (!IsVisible(content, row.b, row.h, row.i, j)) continue;
      const float* key = content.key.row(row.b, KvHead(o, row.h), j);
      double terms = 0;
      for (int64_t d = 0; d < o.qk_head_dim; ++d) terms += std::abs(static_cast<double>(query[d]) * key[d]);
      terms *= std::abs(ScaleOf(o));
      if (content.bias) terms += std::abs(content.bias->Shared(row.b, row.h, row.i, j));
      terms +=
          std::abs(SlopeOf(attention_case.problem(), row.h) * static_cast<double>(content.position(row.b, row.i) - j));
      if (std::isfinite(terms)) largest = std::max(largest, terms);
    }
  });
  return largest;
}

testing::AssertionResult MatchesReference(const AttentionContent& content, const Answer& answer) {
  const AttentionOptions& o = content.options;
  const Answer truth = ReferenceAnswer(content);
  const double largest_logit = LargestLogitTerms(content);
  const double slack = std::max(1.0, largest_logit / 16);

  testing::AssertionResult result = CompareOutput(content, answer, truth, slack);
  if (result && o.dtype == DType::kF32 && largest_logit <= 16) {
    const double error = NormalisedError(answer.output, truth.output);
    if (!(error <= 1e-11)) {
      result = testing::AssertionFailure() << "normalised mean square error of the output is " << error << "\n";
    }
  }
  if (result && o.return_lse) {
    result = CompareRows(o, "lse", answer.lse, truth.lse, [=](const RowIndex&) { return 1e-5 * slack; });
  }
  if (result && o.return_weights) {
    result = CompareRows(o, "weights", answer.weights, truth.weights, [=](const RowIndex&) { return 1e-6 * slack; });
  }
  if (result && o.return_weights) result = CheckWeightRows(content, answer, truth);
  if (result) return result;
  const double error = LargestError(answer.output, truth.output);
  const double naive_error = LargestError(NaiveOutput(content), truth.output);
  return result << "  largest output error " << error << ", naive computation " << naive_error << ", ratio "
                << error / naive_error << ", L " << largest_logit << "\n  " << ToString(o);
}

}  // namespace triad
