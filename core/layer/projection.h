// y = x W^T + b for many rows x: W lies packed as oneDNN wants it, in blocks of columns of y.
//
//                 columns of y:   block 0   block 1   ..
//              +-----------------+---------+---------+
//    rows of x | tile: a class   | product | product |    A row's bytes depend neither on the class of its tile nor on
//              | of row counts   |         |         |    its place there (projection_test); blocks are the layer's.
//              +-----------------+---------+---------+
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/tile_geometry.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "core/tensor/dtype.h"

namespace triad {

// Rows of x and columns of results are padded with zeros to a multiple of this (kPackedStep of pack_tile.h): products
// need no tails.
inline constexpr int64_t kOperandStep = 16;
// Most columns of a block. A block is what a thread works on: narrow, so that few rows occupy many threads; 512 inputs
// x 384 x 4 B = 768 KiB stay in an L2 or a share of L3 from tile to tile. And not 512: on AVX2 oneDNN reads weights
// where they lie, and rows of 2 KiB share cache sets (59 GFLOP/s of 110, where 384 gives 87).
inline constexpr int64_t kBlockColumns = 384;

// What a projection is made of. Borrows the rows of the weight.
struct ProjectionWeights {
  int64_t inputs = 0;              // >= 1
  std::vector<const float*> rows;  // [inputs] for each output, >= 1 of them; null: an output that is always 0
  std::vector<float> bias;         // one for each output, or empty
  DType compute = DType::kF32;     // kBf16: weights and operands are rounded to it
};

struct ColumnBlock {
  int64_t begin = 0;         // a multiple of kOperandStep
  int64_t width = 0;         // columns that count
  int64_t padded_width = 0;  // columns of a result
};

class Projection {
 public:
  // Packs the weights and compiles the products. INTERNAL: oneDNN failed; RESOURCE_EXHAUSTED: no memory. Blocks.
  static absl::StatusOr<std::unique_ptr<const Projection>> Create(const ProjectionWeights& weights, InstructionSet isa);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  DType compute() const { return compute_; }

  // What products read: rows of operand_stride() elements of operand_dtype(), dense, zeros past `inputs`, values
  // rounded to compute().
  DType operand_dtype() const { return operand_dtype_; }
  int64_t operand_stride() const { return operand_stride_; }
  int64_t operand_row_bytes() const { return operand_stride_ * ByteSize(operand_dtype_); }

  const std::vector<ColumnBlock>& blocks() const { return blocks_; }
  // Aligned to 64, zeros up to the padded width of the last block; null: none.
  const float* bias() const { return bias_; }
  // Memory of weights and bias.
  int64_t weights_bytes() const { return weights_bytes_; }

 private:
  friend class ProjectionCall;
  struct FreeAligned {
    void operator()(std::byte* data) const;
  };
  using Memory = std::unique_ptr<std::byte[], FreeAligned>;
  using Products = std::array<std::shared_ptr<const TileMatmul>, std::size(kRowClasses)>;

  Projection() = default;
  static Memory Allocate(int64_t bytes);
  void CutColumns();
  void CopyBias(const std::vector<float>& bias);
  absl::Status PackBlocks(const ProjectionWeights& weights);
  // Index in products_ of a block: its width is the common one, or that of the last block.
  size_t WidthIndex(size_t block) const { return blocks_[block].padded_width == blocks_[0].padded_width ? 0 : 1; }

  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  DType compute_ = DType::kF32;
  DType operand_dtype_ = DType::kF32;
  int64_t operand_stride_ = 0;
  int64_t weights_bytes_ = 0;
  std::vector<ColumnBlock> blocks_;
  std::vector<Memory> packed_;  // of each block
  Memory bias_memory_;
  const float* bias_ = nullptr;
  std::array<Products, 2> products_;  // by width, then row class
};

// One thread's use of a projection, for the time of an item.
class ProjectionCall {
 public:
  // Both outlive the call; scratch is not Reset meanwhile.
  ProjectionCall(const Projection& projection, Scratch& scratch) : projection_(projection), scratch_(scratch) {}

  // result [class rows, padded width of the block], aligned to 64: `operand` (kRowClasses[row_class] rows) times the
  // block's weights, without bias. INTERNAL: oneDNN failed.
  absl::Status Multiply(const std::byte* operand, int row_class, size_t block, float* result);

 private:
  const Projection& projection_;
  Scratch& scratch_;
  std::array<std::array<std::optional<MatmulCall>, std::size(kRowClasses)>, 2> calls_;  // made on first use
};

}  // namespace triad
