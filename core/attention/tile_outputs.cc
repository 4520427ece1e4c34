#include "core/attention/tile_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "core/attention/score_modifiers.h"
#include "core/attention/score_tile.h"

namespace triad {
namespace {

// The caller's floats may lie at any address.
void StoreFloat(float* address, float value) {
  std::memcpy(reinterpret_cast<std::byte*>(address), &value, sizeof(value));
}

// `address` may be null when there is nothing to store: weights over no keys.
void StoreZeros(float* address, int64_t count) {
  if (count == 0) return;
  std::memset(reinterpret_cast<std::byte*>(address), 0, static_cast<size_t>(count) * sizeof(float));
}

}  // namespace

float* TileOutputs::WeightsOf(RowPlace place) const {
  return outputs_.weights + sequence_.weights_begin + place.head * problem_.weights_head_stride +
         place.query * problem_.weights_query_stride;
}

std::byte* TileOutputs::OutputOf(RowPlace place) const {
  const int64_t first =
      sequence_.output_begin + place.query * problem_.output_token_stride + place.head * problem_.output_head_stride;
  return outputs_.output + first * ByteSize(problem_.dtype);
}

void TileOutputs::KeepScores(int64_t row, int64_t key, const float* scores, int64_t count) {
  float* kept = WeightsOf(PlaceOfRow(problem_, item_, row)) + key;
  std::memcpy(reinterpret_cast<std::byte*>(kept), scores, static_cast<size_t>(count) * sizeof(float));
}

OutputPlace TileOutputs::Finish(int64_t row, const FinishedRow& finished) {
  const RowPlace place = PlaceOfRow(problem_, item_, row);
  const bool is_padding = place.query >= sequence_.query_length;
  const float sink = problem_.sinks.empty() || is_padding ? kHiddenScore : problem_.sinks[place.head];
  const bool saw_keys = finished.max != kHiddenScore;

  // In double, once per row: the sink joins as one more term of the sum, and both shift to the larger maximum.
  const double keys_max = double{finished.max} * finished.factor;  // maxima in log2 units from here on
  double max = keys_max;
  double sum = finished.sum;
  double keys_share = 1;
  if (sink != kHiddenScore) {
    const double sink_log2 = sink * std::numbers::log2e;
    max = std::max(max, sink_log2);
    keys_share = saw_keys ? std::exp2(keys_max - max) : 0;
    sum = sum * keys_share + std::exp2(sink_log2 - max);
  }
  if (problem_.return_lse) {
    const double lse = saw_keys ? (max + std::log2(sum)) * std::numbers::ln2 : sink;
    StoreFloat(outputs_.lse + sequence_.lse_begin + place.head * problem_.lse_head_stride + place.query,
               std::isnan(lse) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(lse));  // of one sign
  }
  const double scale = saw_keys ? keys_share / sum : 0;
  if (problem_.return_weights) FinishWeights(place, finished, static_cast<float>(scale));
  return {.stored = OutputOf(place), .factor = static_cast<float>(scale / finished.value_scale)};
}

void TileOutputs::FinishWeights(RowPlace place, const FinishedRow& finished, float scale) {
  float* weights = WeightsOf(place);
  const KeyRange keys = finished.keys;
  StoreZeros(weights, keys.begin);
  StoreZeros(weights + keys.end, problem_.weights_query_stride - keys.end);
  if (finished.max == kHiddenScore) {
    StoreZeros(weights + keys.begin, keys.end - keys.begin);
  } else if (std::isnan(finished.sum)) {
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      StoreFloat(weights + key, IsHidden(place, key) ? 0 : std::numeric_limits<float>::quiet_NaN());
    }
  } else {
    NormalizeWeights({.scores = weights + keys.begin,
                      .count = keys.end - keys.begin,
                      .factor = finished.factor,
                      .max = finished.max,
                      .scale = scale});
  }
}

// By keep or bias; only for rows whose scores no longer tell.
bool TileOutputs::IsHidden(RowPlace place, int64_t key) const {
  const auto entry = [&](const ScoreRows& rows, int64_t begin) {
    const int64_t index = begin + place.head * rows.head_stride + place.query * rows.query_stride + key;
    return LoadElement(rows.data + index * ByteSize(rows.dtype), rows.dtype);
  };
  if (problem_.keep && entry(*problem_.keep, sequence_.keep_begin) == 0) return true;
  return problem_.bias && entry(*problem_.bias, sequence_.bias_begin) == kHiddenScore;
}

}  // namespace triad
