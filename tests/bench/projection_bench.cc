// A layer's projection alone: oneDNN's products over the tiles and blocks of the plan, without gathering operands, bias
// or storing, beside the FMA peak.
//   BM_Part_Projection_F32_512x1536_1024  queries, keys and values of 1024 tokens, 512 wide
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/attention/tile_geometry.h"
#include "core/base/check.h"
#include "core/base/scratch.h"
#include "core/layer/projection.h"
#include "core/layer/projection_plan.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"

namespace triad {
namespace {

constexpr int64_t kRows = 1024;
constexpr int64_t kInputs = 512;
constexpr int64_t kOutputs = 3 * kInputs;
constexpr double kTolerance = 1e-3;  // of sums of 512 terms about 1, in f32

std::vector<float> Normal(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::generate(numbers.begin(), numbers.end(), [&] { return normal(random); });
  return numbers;
}

class ProjectedRows {
 public:
  explicit ProjectedRows(InstructionSet instruction_set)
      : weights_(Normal(kOutputs * kInputs, /*seed=*/1)), operand_(scratch_.Allocate<float>(kRows * kInputs)) {
    ProjectionWeights weights{.inputs = kInputs};
    for (int64_t row = 0; row < kOutputs; ++row) weights.rows.push_back(weights_.data() + row * kInputs);
    absl::StatusOr<std::unique_ptr<const Projection>> projection = Projection::Create(weights, instruction_set);
    TRIAD_CHECK(projection.ok(), "a bench's weights are valid");
    projection_ = *std::move(projection);
    const std::vector<float> inputs = Normal(kRows * kInputs, /*seed=*/2);
    std::copy(inputs.begin(), inputs.end(), operand_);  // as wide as an operand: 512 is a multiple of kOperandStep
    items_ = PlanProjection(*projection_, kRows);
  }

  const std::vector<ProjectionItem>& items() const { return items_; }

  // What an item's last product made: rows from `row` on, columns of `block`.
  struct Tile {
    int64_t row = 0;
    int64_t block = 0;
    const float* result = nullptr;  // in the scratch
  };
  // `scratch` is the thread's, and Reset here.
  Tile RunItem(const ProjectionItem& item, Scratch& scratch) const {
    scratch.Reset();
    ProjectionCall call(*projection_, scratch);
    auto* const result = scratch.Allocate<float>(kTileRows * projection_->blocks()[0].padded_width);
    Tile last{.result = result};
    for (int64_t row = item.row_begin; row < item.row_end;) {
      const int row_class = NextTileClass(item.row_end - row);
      const auto* const operand = reinterpret_cast<const std::byte*>(operand_ + row * kInputs);
      for (int64_t block = item.block_begin; block < item.block_end; ++block) {
        TRIAD_CHECK(call.Multiply(operand, row_class, static_cast<size_t>(block), result).ok(), "oneDNN multiplies");
      }
      last.row = row;
      last.block = item.block_end - 1;
      row += kRowClasses[row_class];  // 1024 rows leave none over
    }
    return last;
  }

  // Whether the first row of the item's last product is what plain loops make of it.
  bool IsRight(const ProjectionItem& item) const {
    Scratch scratch;
    const Tile tile = RunItem(item, scratch);
    const ColumnBlock& block = projection_->blocks()[static_cast<size_t>(tile.block)];
    for (int64_t column = 0; column < block.width; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < kInputs; ++i) {
        sum += double{operand_[tile.row * kInputs + i]} *
               double{weights_[static_cast<size_t>((block.begin + column) * kInputs + i)]};
      }
      if (std::fabs(tile.result[column] - sum) > kTolerance * std::max(1.0, std::fabs(sum))) return false;
    }
    return true;
  }

 private:
  const std::vector<float> weights_;  // [kOutputs, kInputs]
  Scratch scratch_;
  float* const operand_;  // [kRows, kInputs]
  std::unique_ptr<const Projection> projection_;
  std::vector<ProjectionItem> items_;
};

void Run(benchmark::State& state, const BenchOptions& options) {
  const ProjectedRows projected(options.instruction_set);
  const std::vector<ProjectionItem>& items = projected.items();
  if (!projected.IsRight(items.back())) return state.SkipWithError("the result differs from plain loops");
  std::vector<double> work;
  for (const ProjectionItem& item : items) work.push_back(item.flop);
  std::vector<Scratch> scratches(static_cast<size_t>(options.threads));
  RowMeter meter(options, FmaLimit(options.threads));
  while (meter.WantsCall()) {
    meter.Run(work,
              [&](size_t item, int thread) { projected.RunItem(items[item], scratches[static_cast<size_t>(thread)]); });
    meter.EndCall();
  }
  meter.Report(2.0 * kRows * kInputs * kOutputs, state);
}

}  // namespace

void RegisterProjectionRows(const BenchOptions& options) {
  RegisterRow("Part_Projection_F32_512x1536_1024", [&options](benchmark::State& state) { Run(state, options); });
}

}  // namespace triad
