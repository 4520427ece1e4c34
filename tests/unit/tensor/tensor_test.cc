#include "core/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace triad {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(TensorBytesTest, CountsDenseBytesAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(TensorBytes(DType::kF32, {2, 16, 8, 64}), 2 * 16 * 8 * 64 * 4);
  EXPECT_EQ(TensorBytes(DType::kBool, {}), 1);
  EXPECT_EQ(TensorBytes(DType::kBf16, {3, 0, 5}), 0);
  EXPECT_EQ(TensorBytes(DType::kF16, {4096, 4097, 128}), int64_t{4096} * 4097 * 128 * 2);
  EXPECT_EQ(TensorBytes(DType::kBool, {2, -1}), std::nullopt);
  EXPECT_EQ(TensorBytes(DType::kBool, {-1, 0}), std::nullopt);
  EXPECT_EQ(TensorBytes(DType::kBool, {kMax, 2}), std::nullopt);
  EXPECT_EQ(TensorBytes(DType::kF32, {kMax / 2}), std::nullopt);
}

TEST(TensorTest, StartsAsAlignedZeros) {
  absl::StatusOr<Tensor> tensor = Tensor::Zeros(DType::kF32, {2, 3});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
  EXPECT_EQ(tensor->element_count(), 6);
  EXPECT_EQ(tensor->byte_size(), 24);
  for (int64_t i = 0; i < tensor->byte_size(); ++i) EXPECT_EQ(tensor->data()[i], std::byte{0}) << i;
}

TEST(TensorTest, MayBeEmpty) {
  absl::StatusOr<Tensor> tensor = Tensor::Zeros(DType::kBf16, {4, 0, 8});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->element_count(), 0);
  EXPECT_NE(tensor->data(), nullptr);
  EXPECT_EQ(Tensor().element_count(), 0);
}

TEST(TensorTest, CopiesBytesFromAViewOfAnyAlignment) {
  std::vector<std::byte> bytes(13);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const TensorView view{.data = bytes.data() + 1, .dtype = DType::kF16, .shape = {3, 2}};
  absl::StatusOr<Tensor> copy = Tensor::CopyFrom(view);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->shape(), view.shape);
  EXPECT_EQ(copy->dtype(), DType::kF16);
  EXPECT_EQ(std::memcmp(copy->data(), view.data, 12), 0);
  EXPECT_TRUE(Tensor::CopyFrom({.data = nullptr, .dtype = DType::kF32, .shape = {0}}).ok());
}

TEST(TensorTest, MovesWithoutCopying) {
  Tensor source = *Tensor::Zeros(DType::kF32, {8});
  const std::byte* data = source.data();
  const Tensor target = std::move(source);
  EXPECT_EQ(target.data(), data);
  EXPECT_EQ(target.view().data, data);
  EXPECT_EQ(target.view().rank(), 1);
}

TEST(TensorTest, RefusesShapesThatNameNoSize) {
  for (const Shape& shape : {Shape{-1}, Shape{kMax, 2}, Shape{kMax}}) {
    const absl::Status status = Tensor::Zeros(DType::kBool, shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ToString(shape);
    EXPECT_THAT(std::string(status.message()), HasSubstr(ToString(shape)));
  }
}

TEST(ShapeTest, IsWrittenAsAList) {
  EXPECT_EQ(ToString({2, 16, 8, 64}), "[2, 16, 8, 64]");
  EXPECT_EQ(ToString({}), "[]");
}

}  // namespace
}  // namespace triad
