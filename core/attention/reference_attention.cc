#include "core/attention/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace triad {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Work of an item of more than one query, some 2 ms of a core.
constexpr double kFullItemFlop = 1e6;
// What a row costs beside its keys, in the same measure.
constexpr double kRowFlop = 512;

// One row of the answer: query `i` of `sequence`, for query head `head`, which reads `kv_head`.
struct Row {
  const AttentionProblem& problem;
  const Sequence& sequence;
  int64_t i = 0;
  int64_t head = 0;
  int64_t kv_head = 0;
};

// A key that the row sees.
struct ScoredKey {
  int64_t j = 0;
  double score = 0;
};

// What a row's scores come to.
struct Softmax {
  double max = -kInfinity;  // m_i
  double denominator = 0;   // denom_i
  double lse = -kInfinity;
  bool is_nan = false;  // a visible score is NaN or +infinity: so is the whole row

  double Weight(double score) const {
    if (is_nan) return kNaN;
    return score == -kInfinity ? 0 : std::exp(score - max) / denominator;
  }
};

// Kernels hold scores in f32. Past its range a score is an infinity here too, or the reference would disagree about
// rows that have no finite answer in f32.
double InF32Range(double value) {
  if (value > std::numeric_limits<float>::max()) return kInfinity;
  if (value < std::numeric_limits<float>::lowest()) return -kInfinity;
  return value;
}

double Load(const std::byte* data, DType dtype, int64_t element) {
  return LoadElement(data + element * ByteSize(dtype), dtype);
}

void StoreF32(float* data, int64_t element, double value) {
  const float rounded = static_cast<float>(value);
  std::memcpy(reinterpret_cast<std::byte*>(data) + element * sizeof(float), &rounded, sizeof(float));
}

double LoadScoreRow(const ScoreRows& rows, int64_t begin, const Row& row, int64_t j) {
  return Load(rows.data, rows.dtype, begin + row.head * rows.head_stride + row.i * rows.query_stride + j);
}

// scale * q_i . k_j, soft-capped, plus bias, minus ALiBi.
double Score(const Row& row, int64_t j, double bias) {
  const AttentionProblem& problem = row.problem;
  const int64_t query =
      row.sequence.query_begin + row.i * problem.query.token_stride + row.head * problem.query.head_stride;
  const int64_t key = row.sequence.key_begin + j * problem.key.token_stride + row.kv_head * problem.key.head_stride;
  double dot = 0;
  for (int64_t d = 0; d < problem.qk_head_dim; ++d) {
    dot += Load(problem.query.data, problem.dtype, query + d) * Load(problem.key.data, problem.dtype, key + d);
  }
  double score = InF32Range(problem.scale * InF32Range(dot));
  if (problem.logit_softcap > 0) score = problem.logit_softcap * std::tanh(score / problem.logit_softcap);
  score += bias;
  if (!problem.alibi_slopes.empty()) {
    const int64_t position = row.i + row.sequence.query_shift;
    score -= problem.alibi_slopes[row.head] * std::abs(static_cast<double>(position - j));
  }
  return InF32Range(score);
}

// Writes the keys that the row sees to `visible`, which has room for all of VisibleKeys, and returns how many. What is
// hidden by one rule is not read for the next: a hidden entry of bias may hold anything, and so may a hidden key.
int64_t FindVisible(const Row& row, ScoredKey* visible) {
  const AttentionProblem& problem = row.problem;
  const KeyRange range = problem.VisibleKeys(row.sequence, row.i);
  int64_t count = 0;
  for (int64_t j = range.begin; j < range.end; ++j) {
    if (problem.keep && LoadScoreRow(*problem.keep, row.sequence.keep_begin, row, j) == 0) continue;
    const double bias = problem.bias ? LoadScoreRow(*problem.bias, row.sequence.bias_begin, row, j) : 0;
    if (bias == -kInfinity) continue;
    visible[count++] = {.j = j, .score = Score(row, j, bias)};
  }
  return count;
}

Softmax Normalise(const Row& row, const ScoredKey* visible, int64_t count) {
  Softmax softmax;
  const double sink = row.problem.sinks.empty() ? -kInfinity : row.problem.sinks[row.head];
  softmax.max = sink;
  for (int64_t n = 0; n < count; ++n) {
    if (std::isnan(visible[n].score) || visible[n].score == kInfinity) softmax.is_nan = true;
    softmax.max = std::max(softmax.max, visible[n].score);
  }
  if (softmax.is_nan) {
    softmax.lse = kNaN;
  } else if (softmax.max > -kInfinity) {
    softmax.denominator = std::exp(sink - softmax.max);
    for (int64_t n = 0; n < count; ++n) softmax.denominator += std::exp(visible[n].score - softmax.max);
    softmax.lse = softmax.max + std::log(softmax.denominator);
  }
  return softmax;
}

void WriteWeights(const Row& row, const ScoredKey* visible, int64_t count, const Softmax& softmax, float* weights) {
  const int64_t begin = row.sequence.weights_begin + row.head * row.problem.weights_head_stride +
                        row.i * row.problem.weights_query_stride;
  for (int64_t j = 0; j < row.sequence.kv_len; ++j) StoreF32(weights, begin + j, 0);
  for (int64_t n = 0; n < count; ++n) StoreF32(weights, begin + visible[n].j, softmax.Weight(visible[n].score));
}

// Adds the visible values, weighted, to y: [v_head_dim].
void SumValues(const Row& row, const ScoredKey* visible, int64_t count, const Softmax& softmax, double* y) {
  const AttentionProblem& problem = row.problem;
  for (int64_t n = 0; n < count; ++n) {
    if (visible[n].score == -kInfinity) continue;  // its value is not read: it may hold anything
    const double weight = softmax.Weight(visible[n].score);
    const int64_t value =
        row.sequence.value_begin + visible[n].j * problem.value.token_stride + row.kv_head * problem.value.head_stride;
    for (int64_t d = 0; d < problem.v_head_dim; ++d) {
      const double element = Load(problem.value.data, problem.dtype, value + d);
      // A visible value that is no number counts, even where its weight is less than f64 holds.
      y[d] += weight == 0 && !std::isfinite(element) ? element : weight * element;
    }
  }
}

void ComputeRow(const Row& row, const AttentionOutputs& outputs, Scratch& scratch) {
  const AttentionProblem& problem = row.problem;
  ScoredKey* visible = scratch.Allocate<ScoredKey>(row.sequence.key_length);
  double* y = scratch.Allocate<double>(problem.v_head_dim);
  std::fill_n(y, problem.v_head_dim, 0.0);

  int64_t count = 0;
  Softmax softmax;  // of a padding row: sees nothing, not even the sink
  if (row.i < row.sequence.query_length) {
    count = FindVisible(row, visible);
    softmax = Normalise(row, visible, count);
    SumValues(row, visible, count, softmax, y);
  }

  const int64_t output =
      row.sequence.output_begin + row.i * problem.output_token_stride + row.head * problem.output_head_stride;
  for (int64_t d = 0; d < problem.v_head_dim; ++d) {
    StoreElement(outputs.output + (output + d) * ByteSize(problem.dtype), problem.dtype, static_cast<float>(y[d]));
  }
  if (problem.return_lse) {
    StoreF32(outputs.lse, row.sequence.lse_begin + row.head * problem.lse_head_stride + row.i, softmax.lse);
  }
  if (problem.return_weights) WriteWeights(row, visible, count, softmax, outputs.weights);
}

// What an item is at least made to do before the next one begins.
double LeastItemWork(const AttentionProblem& problem) {
  double rows = 0;
  for (const Sequence& sequence : problem.sequences) rows += static_cast<double>(sequence.q_len);
  const double work = FlopNeeded(problem) + kRowFlop * rows * static_cast<double>(problem.heads);
  return std::max(kFullItemFlop, work / static_cast<double>(ReferenceAttention::kMaxFullItems));
}

// The items of kv head 0 of a sequence.
std::vector<WorkItem> ItemsOfHead(const AttentionProblem& problem, int64_t s, double least_work) {
  const Sequence& sequence = problem.sequences[static_cast<size_t>(s)];
  const int64_t group = problem.group();
  const double flop_per_key = 2.0 * static_cast<double>((problem.qk_head_dim + problem.v_head_dim) * group);
  std::vector<WorkItem> items;
  double work = least_work;  // of the last item: there is none yet
  for (int64_t i = 0; i < sequence.q_len; ++i) {
    if (work >= least_work) {
      items.push_back({.sequence = s, .row_begin = i * group});
      work = 0;
    }
    const KeyRange range = i < sequence.query_length ? problem.VisibleKeys(sequence, i) : KeyRange{};
    const double flop = flop_per_key * static_cast<double>(range.end - range.begin);
    items.back().row_end = (i + 1) * group;
    items.back().flop += flop;
    work += flop + kRowFlop * static_cast<double>(group);
  }
  return items;
}

// How many kv heads, of those `left`, are one item: as many as it takes, if one is no more than an item.
int64_t HeadsOfItem(const std::vector<WorkItem>& items_of_head, double least_work, int64_t left) {
  if (items_of_head.size() > 1) return 1;
  const double work = items_of_head[0].flop + kRowFlop * static_cast<double>(items_of_head[0].row_end);
  return static_cast<int64_t>(std::min(std::ceil(least_work / work), static_cast<double>(left)));
}

}  // namespace

std::vector<WorkItem> ReferenceAttention::Plan(const AttentionProblem& problem) const {
  const double least_work = LeastItemWork(problem);
  std::vector<WorkItem> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const std::vector<WorkItem> of_head = ItemsOfHead(problem, static_cast<int64_t>(s), least_work);
    for (int64_t kv_head = 0; kv_head < problem.kv_heads; kv_head += items.back().kv_heads) {
      const int64_t kv_heads = HeadsOfItem(of_head, least_work, problem.kv_heads - kv_head);
      for (const WorkItem& item : of_head) {
        items.push_back(item);
        items.back().kv_head = kv_head;
        items.back().kv_heads = kv_heads;
        items.back().flop *= static_cast<double>(kv_heads);
        items.back().cost = items.back().flop;
      }
    }
  }
  return items;
}

absl::Status ReferenceAttention::Run(const AttentionProblem& problem, const WorkItem& item,
                                     const AttentionOutputs& outputs, Scratch& scratch) const {
  const int64_t group = problem.group();
  for (int64_t kv_head = item.kv_head; kv_head < item.kv_head + item.kv_heads; ++kv_head) {
    for (int64_t r = item.row_begin; r < item.row_end; ++r) {
      scratch.Reset();
      ComputeRow({.problem = problem,
                  .sequence = problem.sequences[item.sequence],
                  .i = r / group,
                  .head = kv_head * group + r % group,
                  .kv_head = kv_head},
                 outputs, scratch);
    }
  }
  return absl::OkStatus();
}

}  // namespace triad
