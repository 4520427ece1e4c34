#include "tests/bench/strip_operands.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/attention/lane_product.h"
#include "core/base/cpu.h"

namespace triad {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kTolerance = 1e-3;  // of sums of some 100 terms about 1, in f32: 100 roundings of 100 * 2^-24

float* Normal(int64_t count, uint64_t seed, Scratch& scratch) {
  auto* const numbers = scratch.Allocate<float>(count);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::generate_n(numbers, count, [&] { return normal(random); });
  return numbers;
}

int64_t WidestOf(const std::vector<RowStrip>& strips) {
  int64_t widest = 0;
  for (const RowStrip& strip : strips) widest = std::max(widest, strip.width);
  return widest;
}

bool IsNear(double value, double expected) {
  return std::fabs(value - expected) <= kTolerance * std::max(1.0, std::fabs(expected));
}

struct LeftFactor {
  const float* left = nullptr;
  int64_t row_stride = 0;
  int64_t term_stride = 0;
};

struct ProductSizes {
  int64_t rows = 0;
  int64_t terms = 0;
  int64_t width = 0;
};

// Whether result [rows, width] is near left [rows, terms] * right [terms, width].
bool IsProduct(const float* result, const LeftFactor& factor, const ProductSizes& sizes, const float* right) {
  for (int64_t row = 0; row < sizes.rows; ++row) {
    for (int64_t lane = 0; lane < sizes.width; ++lane) {
      double sum = 0;
      for (int64_t term = 0; term < sizes.terms; ++term) {
        sum += double{factor.left[row * factor.row_stride + term * factor.term_stride]} *
               double{right[term * sizes.width + lane]};
      }
      if (!IsNear(result[row * sizes.width + lane], sum)) return false;
    }
  }
  return true;
}

}  // namespace

StripOperands::StripOperands(int64_t rows, int64_t dims)
    : dims_(dims),
      strips_(StripsOf(rows, StripShapeOf(DetectInstructionSet()))),
      rows_(strips_.back().begin + strips_.back().width),
      factor_(static_cast<float>(kLog2E / std::sqrt(static_cast<double>(dims)))),
      keys_(Normal(2 * kFusedKeyBlock * dims, /*seed=*/1, scratch_)),
      values_(Normal(2 * kFusedKeyBlock * dims, /*seed=*/2, scratch_)),
      queries_(Normal(rows_ * dims, /*seed=*/3, scratch_)),
      outputs_(scratch_.Allocate<float>(rows_ * dims)),
      scores_(scratch_.Allocate<float>(kFusedKeyBlock * WidestOf(strips_))),
      state_({.max = scratch_.Allocate<float>(rows_),
              .sum = scratch_.Allocate<float>(rows_),
              .keep = scratch_.Allocate<float>(rows_),
              .add = scratch_.Allocate<float>(rows_)}) {
  Clear();
}

void StripOperands::Clear() {
  std::fill_n(outputs_, rows_ * dims_, 0.0f);
  std::fill_n(state_.max, rows_, -std::numeric_limits<float>::infinity());
  std::fill_n(state_.sum, rows_, 0.0f);
  std::fill_n(state_.keep, rows_, 0.5f);
  std::fill_n(state_.add, rows_, 0.5f);
  MultiplyKeys();
}

double StripOperands::pairs() const { return static_cast<double>(rows_ * kFusedKeyBlock); }

LaneState StripOperands::StateOf(const RowStrip& strip) const {
  return {.max = state_.max + strip.begin,
          .sum = state_.sum + strip.begin,
          .keep = state_.keep + strip.begin,
          .add = state_.add + strip.begin};
}

void StripOperands::MultiplyKeysOf(size_t strip) {
  triad::MultiplyKeys({.keys = BlockOf(keys_, strip),
                       .key_stride = dims_,
                       .key_count = kFusedKeyBlock,
                       .queries = queries_ + strips_[strip].begin * dims_,
                       .dims = dims_,
                       .width = strips_[strip].width,
                       .scores = scores_});
}

void StripOperands::SoftmaxOf(size_t strip) {
  SoftmaxStrip({.scores = scores_, .keys = kFusedKeyBlock, .width = strips_[strip].width, .factor = factor_},
               StateOf(strips_[strip]));
}

void StripOperands::AddValuesOf(size_t strip) {
  const LaneState state = StateOf(strips_[strip]);
  triad::AddValues({.values = BlockOf(values_, strip),
                    .value_stride = dims_,
                    .key_count = kFusedKeyBlock,
                    .weights = scores_,
                    .dims = dims_,
                    .width = strips_[strip].width,
                    .keep = state.keep,
                    .add = state.add,
                    .output = outputs_ + strips_[strip].begin * dims_});
}

void StripOperands::MultiplyKeys() {
  for (size_t strip = 0; strip < strips_.size(); ++strip) MultiplyKeysOf(strip);
}
void StripOperands::Softmax() {
  for (size_t strip = 0; strip < strips_.size(); ++strip) SoftmaxOf(strip);
}
void StripOperands::AddValues() {
  for (size_t strip = 0; strip < strips_.size(); ++strip) AddValuesOf(strip);
}

bool StripOperands::IsRight() {
  const size_t strip = strips_.size() - 1;
  MultiplyKeysOf(strip);
  bool is_right = ScoresAreRight(strip);
  const std::vector<float> scores(scores_, scores_ + kFusedKeyBlock * strips_[strip].width);
  SoftmaxOf(strip);
  is_right = is_right && WeightsAreRight(strip, scores);
  AddValuesOf(strip);  // of a first block: keep is 0, add 1
  is_right = is_right && OutputIsRight(strip);
  Clear();
  return is_right;
}

bool StripOperands::ScoresAreRight(size_t strip) const {
  const int64_t width = strips_[strip].width;
  return IsProduct(scores_, {.left = BlockOf(keys_, strip), .row_stride = dims_, .term_stride = 1},
                   {.rows = kFusedKeyBlock, .terms = dims_, .width = width}, queries_ + strips_[strip].begin * dims_);
}

bool StripOperands::WeightsAreRight(size_t strip, const std::vector<float>& scores) const {
  const int64_t width = strips_[strip].width;
  const LaneState state = StateOf(strips_[strip]);
  for (int64_t lane = 0; lane < width; ++lane) {
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0;
    const auto score = [&](int64_t key) { return double{scores[static_cast<size_t>(key * width + lane)]}; };
    for (int64_t key = 0; key < kFusedKeyBlock; ++key) max = std::max(max, score(key));
    for (int64_t key = 0; key < kFusedKeyBlock; ++key) {
      const double weight = std::exp2((score(key) - max) * factor_);
      if (!IsNear(scores_[key * width + lane], weight)) return false;
      sum += weight;
    }
    if (!IsNear(state.sum[lane], sum) || !IsNear(state.max[lane], max)) return false;
  }
  return true;
}

bool StripOperands::OutputIsRight(size_t strip) const {
  const int64_t width = strips_[strip].width;
  return IsProduct(outputs_ + strips_[strip].begin * dims_,
                   {.left = BlockOf(values_, strip), .row_stride = 1, .term_stride = dims_},
                   {.rows = dims_, .terms = kFusedKeyBlock, .width = width}, scores_);
}

}  // namespace triad
