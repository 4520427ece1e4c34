// The parts of the fused kernel's items of a few rows (decode), each alone, beside a plain read of the keys or values:
//   BM_Part_FewRows_Scores_*  queries . keys (row_product.h)
//   BM_Part_FewRows_Values_*  weights . values
// Block by block through 65536 tokens of 8 heads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/attention/fused_geometry.h"
#include "core/attention/row_product.h"
#include "core/base/scratch.h"
#include "core/tensor/tensor.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"

namespace triad {
namespace {

// Of which the keys are taken, for either part. The blocks of all heads are rows of one tensor.
constexpr AttentionRow kF32 = {.name = "F32_65536", .q_len = 1, .kv_len = 65536};
constexpr AttentionRow kBf16 = {.name = "Bf16_65536", .dtype = DType::kBf16, .q_len = 1, .kv_len = 65536};
constexpr double kTolerance = 1e-3;  // of sums of some 100 terms about 1, in f32

// One thread's: one row, whose queries and weights are 1/2, so that a score is half a key's sum.
class FewRowsOperands {
 public:
  explicit FewRowsOperands(const AttentionWorkload& workload)
      : dtype_(workload.key().dtype()),
        dims_(workload.key().shape().back()),
        row_bytes_(dims_ * ByteSize(dtype_)),
        rows_(workload.key().data()),
        row_count_(workload.key().byte_size() / row_bytes_),
        halves_(scratch_.Allocate<float>(halves())),
        scores_(scratch_.Allocate<float>(kFusedKeyBlock)),
        output_(scratch_.Allocate<float>(RoundUp(dims_, kPackedStep))) {
    std::fill_n(halves_, halves(), 0.5f);
  }

  int64_t blocks() const { return row_count_ / kFusedKeyBlock; }

  void Scores(int64_t block) {
    MultiplyKeysByRows({.keys = Block(block),
                        .queries = halves_,
                        .query_stride = dims_,
                        .rows = 1,
                        .scores = scores_,
                        .score_stride = kFusedKeyBlock});
  }

  void Values(int64_t block) {
    MultiplyValuesByRows({.values = Block(block),
                          .weights = halves_,
                          .weight_stride = kFusedKeyBlock,
                          .rows = 1,
                          .output = output_,
                          .output_stride = dims_});
  }

  // Whether both are what plain loops in f64 make of the last block.
  bool IsRight() {
    Scores(blocks() - 1);
    Values(blocks() - 1);
    std::vector<double> key_sums(static_cast<size_t>(kFusedKeyBlock)), dim_sums(static_cast<size_t>(dims_));
    const std::byte* element = Block(blocks() - 1).data;
    for (double& key_sum : key_sums) {
      for (double& dim_sum : dim_sums) {
        key_sum += LoadElement(element, dtype_) / 2;
        dim_sum += LoadElement(element, dtype_) / 2;
        element += ByteSize(dtype_);
      }
    }
    const auto is_near = [](float a, double b) { return std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(b)); };
    return std::equal(key_sums.begin(), key_sums.end(), scores_, [&](double a, float b) { return is_near(b, a); }) &&
           std::equal(dim_sums.begin(), dim_sums.end(), output_, [&](double a, float b) { return is_near(b, a); });
  }

 private:
  // A query, or weights of a block.
  int64_t halves() const { return std::max(dims_, kFusedKeyBlock); }
  SourceRows Block(int64_t block) const {
    return {.data = rows_ + block * kFusedKeyBlock * row_bytes_,
            .stride_bytes = row_bytes_,
            .count = kFusedKeyBlock,
            .dtype = dtype_,
            .dims = dims_};
  }

  const DType dtype_;
  const int64_t dims_;
  const int64_t row_bytes_;
  const std::byte* const rows_;
  const int64_t row_count_;
  Scratch scratch_;
  float* const halves_;
  float* const scores_;
  float* const output_;
};

using FewRowsPart = void (FewRowsOperands::*)(int64_t block);

void Run(benchmark::State& state, FewRowsPart part, const AttentionRow& row, const BenchOptions& options) {
  const AttentionWorkload workload(row);
  std::vector<std::unique_ptr<FewRowsOperands>> operands;  // of each thread
  for (int thread = 0; thread < options.threads; ++thread) {
    operands.push_back(std::make_unique<FewRowsOperands>(workload));
    if (!operands.back()->IsRight()) return state.SkipWithError("the result differs from plain loops");
  }
  constexpr int64_t kBlocks = kFusedKeyChunk / kFusedKeyBlock;  // of an item
  const int64_t items = operands[0]->blocks() / kBlocks;
  const auto bytes = workload.key().byte_size();
  const std::vector<double> work(static_cast<size_t>(items), static_cast<double>(bytes) / static_cast<double>(items));
  RowMeter meter(options, StreamLimit(options.threads, {BytesOf(workload.key())}));
  while (meter.WantsCall()) {
    meter.Run(work, [&](size_t item, int thread) {
      const auto first = static_cast<int64_t>(item) * kBlocks;
      for (int64_t i = 0; i < kBlocks; ++i) (*operands[static_cast<size_t>(thread)].*part)(first + i);
    });
    meter.EndCall();
  }
  meter.Report(static_cast<double>(bytes), state);
}

}  // namespace

void RegisterFewRowsRows(const BenchOptions& options) {
  for (const AttentionRow* row : {&kF32, &kBf16}) {
    const auto add = [&](const char* name, FewRowsPart part) {
      RegisterRow(std::string("Part_FewRows_") + name + "_" + row->name,
                  [part, row, &options](benchmark::State& state) { Run(state, part, *row, options); });
    };
    add("Scores", &FewRowsOperands::Scores);
    add("Values", &FewRowsOperands::Values);
  }
}

}  // namespace triad
