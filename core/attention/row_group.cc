#include "core/attention/row_group.h"

#include <algorithm>

#include "core/attention/pack_tile.h"
#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kStateStep = 16;  // RowState's

}  // namespace

RowGroup::RowGroup(int64_t rows, int64_t v_head_dim, Scratch& scratch)
    : scratch_(scratch),
      rows_(rows),
      output_dims_(RoundUp(v_head_dim, kPackedStep)),
      output_floats_(rows * output_dims_),
      state_rows_(RoundUp(rows, kStateStep)),
      chunk_(NewSums()) {}

RowSums RowGroup::NewSums() const {
  float* const floats = scratch_.Allocate<float>(sums_floats());
  return {.state = {.max = floats, .sum = floats + state_rows_}, .output = floats + 2 * state_rows_};
}

void RowGroup::Clear(const RowSums& sums) const {
  std::fill_n(sums.state.max, state_rows_, kHiddenScore);
  std::fill_n(sums.state.sum, state_rows_, 0.0f);
  std::fill_n(sums.output, output_floats_, 0.0f);
}

void RowGroup::Start() {
  Clear(chunk_);
  if (total_.output != nullptr) Clear(total_);
}

void RowGroup::EndChunk() {
  if (total_.output == nullptr) {
    total_ = NewSums();
    Clear(total_);
  }
  Merge(chunk_, total_);
  Clear(chunk_);
}

void RowGroup::EndPart() { std::copy_n(chunk_.state.max, sums_floats(), part_); }

void RowGroup::AddPart(const float* result, int64_t) { std::copy_n(result, sums_floats(), chunk_.state.max); }

void RowGroup::HoldNumbers() {
  held_ = NewSums();
  std::copy_n(total().state.max, sums_floats(), held_.state.max);
  is_held_.resize(static_cast<size_t>(rows_));
  for (int64_t row = 0; row < rows_; ++row) is_held_[static_cast<size_t>(row)] = IsFinite(held_, row);
}

void RowGroup::Finish(float value_scale) {
  if (!is_held_.empty()) FinishRows(/*held=*/true, held_, /*value_scale=*/1);
  FinishRows(/*held=*/false, total(), value_scale);
}

bool RowGroup::IsFinite() const {
  return AllFinite(chunk_.output, output_floats_) &&
         (total_.output == nullptr || AllFinite(total_.output, output_floats_));
}

}  // namespace triad
