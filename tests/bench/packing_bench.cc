// What the fused kernel packs, beside a plain read of as many bytes. Sizes and strides are those of 2048 tokens, 8
// heads of 64, 4 MiB in f32: both sides read it from the last cache.
//   BM_Part_Pack_F32_TokensHeads   blocks of keys that lie a stride apart (pack_tile.h)
//   BM_Part_Pack_F16               blocks of 16-bit keys, dense, widened
//   BM_Part_Transpose_Queries_F32  strips of queries, dense, to lanes
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/fused_geometry.h"
#include "core/attention/lane_product.h"
#include "core/attention/pack_tile.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "core/tensor/tensor.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"

namespace triad {
namespace {

constexpr int64_t kSweeps = 16;  // through the tensor, a call

struct PackingRow {
  const char* name;
  AttentionRow tensor = {};  // whose queries' shape and strides are those of the row
  bool transposes = false;
};

constexpr PackingRow kRows[] = {
    {.name = "Pack_F32_TokensHeads", .tensor = {.name = "", .tokens_heads = true}},
    {.name = "Pack_F16", .tensor = {.name = "", .dtype = DType::kF16}},
    {.name = "Transpose_Queries_F32", .tensor = {.name = ""}, .transposes = true},
};

// Rows of the keys, of which every item packs some.
class PackedRows {
 public:
  explicit PackedRows(const PackingRow& row)
      : row_(row),
        workload_(row.tensor),
        step_(row.transposes
                  ? StripShapeOf(DetectInstructionSet()).unit * StripShapeOf(DetectInstructionSet()).most_units
                  : kFusedKeyBlock),
        per_head_(row.tensor.kv_len / step_) {}  // a rest too short for an item is left out

  int64_t items() const { return row_.tensor.kv_heads * per_head_; }
  int64_t dims() const { return row_.tensor.head_dim; }
  int64_t rows_per_item() const { return step_; }
  absl::Span<const std::byte> bytes() const { return BytesOf(workload_.key()); }
  int64_t bytes_per_item() const { return step_ * dims() * ByteSize(row_.tensor.dtype); }

  void Pack(int64_t item, float* packed) const {
    const SourceRows rows = RowsOf(item);
    if (!row_.transposes) return PackRows(rows, packed);
    TransposeRows(
        {.rows = reinterpret_cast<const float*>(rows.data), .stride = dims(), .count = step_, .columns = dims()},
        packed, step_);
  }

  // Whether `packed` is what Pack makes of `item`.
  bool IsPacked(int64_t item, const float* packed) const {
    const SourceRows rows = RowsOf(item);
    for (int64_t i = 0; i < step_ * dims(); ++i) {
      const int64_t r = i / dims();
      const int64_t dim = i % dims();
      const float element = LoadElement(rows.data + r * rows.stride_bytes + dim * ByteSize(rows.dtype), rows.dtype);
      if (packed[row_.transposes ? dim * step_ + r : i] != element) return false;
    }
    return true;
  }

 private:
  SourceRows RowsOf(int64_t item) const {
    const int64_t head = item / per_head_;
    const int64_t token = item % per_head_ * step_;
    const bool tokens_heads = row_.tensor.tokens_heads;
    const int64_t token_stride = (tokens_heads ? row_.tensor.kv_heads : 1) * dims();
    const int64_t head_stride = (tokens_heads ? 1 : row_.tensor.kv_len) * dims();
    const int64_t element_bytes = ByteSize(row_.tensor.dtype);
    return {.data = workload_.key().data() + (token * token_stride + head * head_stride) * element_bytes,
            .stride_bytes = token_stride * element_bytes,
            .count = step_,
            .dtype = row_.tensor.dtype,
            .dims = dims()};
  }

  const PackingRow& row_;
  const AttentionWorkload workload_;
  const int64_t step_;  // rows of an item
  const int64_t per_head_;
};

void Run(benchmark::State& state, const PackingRow& row, const BenchOptions& options) {
  const PackedRows rows(row);
  std::vector<Scratch> scratches(static_cast<size_t>(options.threads));
  std::vector<float*> packed;  // of each thread
  for (Scratch& scratch : scratches) packed.push_back(scratch.Allocate<float>(rows.rows_per_item() * rows.dims()));
  rows.Pack(rows.items() - 1, packed[0]);
  if (!rows.IsPacked(rows.items() - 1, packed[0])) return state.SkipWithError("the result differs from plain loops");
  const auto bytes = static_cast<double>(rows.bytes_per_item());
  const std::vector<double> work(static_cast<size_t>(kSweeps * rows.items()), bytes);
  RowMeter meter(options, StreamLimit(options.threads, {rows.bytes()}));
  while (meter.WantsCall()) {
    meter.Run(work, [&](size_t item, int thread) {
      rows.Pack(static_cast<int64_t>(item) % rows.items(), packed[static_cast<size_t>(thread)]);
    });
    meter.EndCall();
  }
  meter.Report(bytes * static_cast<double>(work.size()), state);
}

}  // namespace

void RegisterPackingRows(const BenchOptions& options) {
  for (const PackingRow& row : kRows) {
    RegisterRow(std::string("Part_") + row.name,
                [&row, &options](benchmark::State& state) { Run(state, row, options); });
  }
}

}  // namespace triad
