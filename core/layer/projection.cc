#include "core/layer/projection.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kAlignment = 64;
// Blocks are whole multiples of the widest register tiles: 64 columns of AVX-512, 24 of AVX2 at 384.
constexpr int64_t kBlockStep = 64;

// Rows `block` of the weight as the product wants them: [padded width, operand stride], zeros where nothing is.
void CopyRows(const ProjectionWeights& weights, const ColumnBlock& block, int64_t stride, DType dtype,
              std::byte* rows) {
  std::memset(rows, 0, static_cast<size_t>(block.padded_width * stride * ByteSize(dtype)));
  for (int64_t column = 0; column < block.width; ++column) {
    const float* source = weights.rows[block.begin + column];
    if (source == nullptr) continue;
    std::byte* row = rows + column * stride * ByteSize(dtype);
    if (weights.compute == DType::kF32) {
      std::memcpy(row, source, static_cast<size_t>(weights.inputs) * sizeof(float));
      continue;
    }
    for (int64_t i = 0; i < weights.inputs; ++i) {
      const uint16_t rounded = F32ToBf16(source[i]);
      if (dtype == DType::kBf16) {
        std::memcpy(row + i * 2, &rounded, sizeof(rounded));
      } else {
        StoreElement(row + i * 4, DType::kF32, Bf16ToF32(rounded));
      }
    }
  }
}

}  // namespace

void Projection::FreeAligned::operator()(std::byte* data) const { std::free(data); }

Projection::Memory Projection::Allocate(int64_t bytes) {
  Memory memory(static_cast<std::byte*>(
      std::aligned_alloc(kAlignment, static_cast<size_t>(RoundUp(std::max<int64_t>(bytes, 1), kAlignment)))));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

absl::StatusOr<std::unique_ptr<const Projection>> Projection::Create(const ProjectionWeights& weights,
                                                                     InstructionSet isa) {
  try {
    std::unique_ptr<Projection> projection(new Projection);
    projection->inputs_ = weights.inputs;
    projection->outputs_ = static_cast<int64_t>(weights.rows.size());
    projection->compute_ = weights.compute;
    const bool multiplies_bf16 = weights.compute == DType::kBf16 && LayoutFor(isa).bf16_products;
    projection->operand_dtype_ = multiplies_bf16 ? DType::kBf16 : DType::kF32;
    projection->operand_stride_ = RoundUp(weights.inputs, kOperandStep);
    projection->CutColumns();
    projection->CopyBias(weights.bias);
    if (absl::Status status = projection->PackBlocks(weights); !status.ok()) return status;
    return std::unique_ptr<const Projection>(std::move(projection));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for weights of ", weights.rows.size(), " x ", weights.inputs));
  }
}

void Projection::CutColumns() {
  // As equal as they can be, so that threads end together.
  const int64_t step = RoundUp(CeilDiv(outputs_, CeilDiv(outputs_, kBlockColumns)), kBlockStep);
  for (int64_t begin = 0; begin < outputs_; begin += step) {
    const int64_t width = std::min(step, outputs_ - begin);
    blocks_.push_back({.begin = begin, .width = width, .padded_width = RoundUp(width, kOperandStep)});
  }
}

void Projection::CopyBias(const std::vector<float>& bias) {
  if (bias.empty()) return;
  const int64_t padded = RoundUp(outputs_, kOperandStep);
  bias_memory_ = Allocate(padded * static_cast<int64_t>(sizeof(float)));
  auto* copy = reinterpret_cast<float*>(bias_memory_.get());
  std::copy(bias.begin(), bias.end(), copy);
  std::fill(copy + outputs_, copy + padded, 0.0f);
  bias_ = copy;
  weights_bytes_ += padded * static_cast<int64_t>(sizeof(float));
}

absl::Status Projection::PackBlocks(const ProjectionWeights& weights) {
  const Memory rows = Allocate(blocks_[0].padded_width * operand_row_bytes());
  std::array<std::shared_ptr<const WeightLayout>, 2> layouts;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const size_t width = WidthIndex(b);
    MatmulShape shape{.k = operand_stride_,
                      .n = blocks_[b].padded_width,
                      .a_stride = operand_stride_,
                      .b_stride = operand_stride_,
                      .c_stride = blocks_[b].padded_width,
                      .b_transposed = true,
                      .bf16 = operand_dtype_ == DType::kBf16};
    if (layouts[width] == nullptr) {
      shape.m = kTileRows;  // the layout is the largest class's; the others take it as it is
      absl::StatusOr<std::shared_ptr<const WeightLayout>> layout = WeightLayout::Create(shape);
      if (!layout.ok()) return layout.status();
      layouts[width] = *std::move(layout);
      for (size_t c = 0; c < std::size(kRowClasses); ++c) {
        shape.m = kRowClasses[c];
        absl::StatusOr<std::shared_ptr<const TileMatmul>> product = TileMatmul::Create(shape, layouts[width].get());
        if (!product.ok()) return product.status();
        products_[width][c] = *std::move(product);
      }
    }
    CopyRows(weights, blocks_[b], operand_stride_, operand_dtype_, rows.get());
    packed_.push_back(Allocate(layouts[width]->byte_size()));
    weights_bytes_ += layouts[width]->byte_size();
    if (absl::Status status = layouts[width]->Pack(rows.get(), packed_.back().get()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ProjectionCall::Multiply(const std::byte* operand, int row_class, size_t block, float* result) {
  const size_t width = projection_.WidthIndex(block);
  std::optional<MatmulCall>& call = calls_[width][row_class];
  if (!call) {
    const std::shared_ptr<const TileMatmul>& product = projection_.products_[width][row_class];
    absl::StatusOr<MatmulCall> made =
        MatmulCall::Create(product, scratch_.Allocate<std::byte>(product->scratchpad_bytes()));
    if (!made.ok()) return made.status();
    call = *std::move(made);
  }
  return call->Run(operand, projection_.packed_[block].get(), result);
}

}  // namespace triad
