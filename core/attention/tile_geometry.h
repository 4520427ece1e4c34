// How the oneDNN kernel cuts a problem: pure arithmetic, shared by planning and running.
//
//            one key block: 256 keys at absolute positions
//          +------------------------------+
//   rows   |  tile: up to 192 rows        |   an item: up to 768 rows of one (sequence, kv head) packs each key block
//   (q)    +------------------------------+   once and runs its tiles over it
//          |  tile                        |
//          +------------------------------+
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "core/attention/item_plan.h"
#include "core/base/cpu.h"

namespace triad {

// Keys of a block. At most 512 keeps the value product's sums in plain key order on AVX-512 (oneDNN splits longer
// ones); 256 keeps a tile's scores (192 KiB) beside its operands in an L2 of 512 KiB. Part of every answer's bytes.
constexpr int64_t kKeyBlock = 256;
// Most rows of an item. Packing a block costs about as much as 6 rows' products, and more where keys lie a page apart:
// with 768 rows it is 1 %. Against 384 that gave 8 % (kernels_bench, head_dim 128, AVX2).
constexpr int64_t kItemRows = 768;
// Rows of a tile. A oneDNN call costs 1.5 us, a product of 192 x 256 x 64 some 65 us on AVX2; with 96 rows, calls are a
// twentieth of the time.
constexpr int64_t kTileRows = 192;
constexpr ItemRowsRule kTiledItems = {.step = kTileRows, .most = kItemRows};

// What an instruction set decides.
struct TileLayout {
  // Keys packed [qk_head_dim, keys] (AVX2's kernel is 10 % faster on it) or as rows (dense at every trimmed width,
  // which oneDNN's AVX-512 kernels need).
  bool transposes_keys = false;
  // Stride of a tile's scores and of transposed keys; 0: the width itself. 272 floats are 17 cache lines: rows of a
  // power of two would share a few sets of L1, which costs AVX2's kernel 20 %.
  int64_t padded_stride = 0;
  // Multiply bf16 as bf16. Otherwise everything is widened when packed.
  bool bf16_products = false;

  int64_t ScoreStride(int64_t width) const { return padded_stride == 0 ? width : padded_stride; }
};

TileLayout LayoutFor(InstructionSet isa);

// Rows that a product computes for `rows` <= kTileRows rows: few, so that oneDNN compiles few shapes, and those for
// which a row's bytes depend neither on the number of rows nor on its place among them (onednn_matmul_test).
constexpr int64_t kRowClasses[] = {16, 48, 64, 96, 128, 192};
int RowClassIndex(int64_t rows);

// Columns that a product computes so as to cover the keys [begin, end) of one block, 0 <= begin < end <= kKeyBlock.
// From a multiple of 64, as many as one of kWidths.
struct ColumnSpan {
  int64_t begin = 0;
  int64_t width = 0;
};
constexpr int64_t kWidths[] = {16, 32, 48, 64, 128, 192, 256};
ColumnSpan SpanOf(int64_t begin, int64_t end);
int WidthIndex(int64_t width);

// Work of an item, padding of tiles included.
double FlopOf(const AttentionProblem& problem, const WorkItem& item);

}  // namespace triad
