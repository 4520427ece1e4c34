#include "triad/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

using ::testing::ElementsAre;

template <class T>
Tensor Owned(DataType dtype, const std::vector<T>& elements) {
  std::string bytes(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  return Tensor(dtype, {static_cast<int64_t>(elements.size())}, std::move(bytes));
}

TEST(TensorTest, ViewsBorrowTheirValues) {
  const std::vector<float> values = {1, 2};
  const TensorView view = TensorView::Float32(values, {2, 1});
  EXPECT_EQ(view.data.data(), reinterpret_cast<const std::byte*>(values.data()));
  EXPECT_EQ(view.data.size(), 8);
  EXPECT_THAT(view.shape, ElementsAre(2, 1));
}

TEST(TensorTest, ViewsHoldTheirOwner) {
  auto values = std::make_shared<const std::vector<uint16_t>>(3);
  const std::weak_ptr<const std::vector<uint16_t>> watched = values;
  {
    const TensorView view = TensorView::Float16(*values, {3}, values);
    values.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(TensorTest, AnAnswerCanBeSharedWithoutACopy) {
  const auto answer = std::make_shared<const Tensor>(Owned<float>(DataType::kFloat32, {1.5F, -2}));
  const TensorView view = Tensor::Share(answer);
  EXPECT_EQ(view.data.data(), answer->data().data());
  EXPECT_EQ(view.shape, answer->shape());
  EXPECT_EQ(view.owner, answer);
}

TEST(TensorTest, OnlyFloat32IsReadInPlace) {
  EXPECT_THAT(Owned<float>(DataType::kFloat32, {1.5F, -2}).float32(), ElementsAre(1.5F, -2));
  EXPECT_TRUE(Owned<uint16_t>(DataType::kBfloat16, {0, 0}).float32().empty());
}

TEST(TensorTest, WidensEveryTypeExactly) {
  EXPECT_THAT(Owned<float>(DataType::kFloat32, {1.5F, -2}).CopyToFloat32(), ElementsAre(1.5F, -2));
  EXPECT_THAT(Owned<uint16_t>(DataType::kBfloat16, {0x3FC0, 0xC000}).CopyToFloat32(), ElementsAre(1.5F, -2));
  EXPECT_THAT(Owned<uint8_t>(DataType::kBool, {0, 1, 7}).CopyToFloat32(), ElementsAre(0, 1, 1));
  // Zeros, the least and the largest subnormal, one, the largest, infinity.
  EXPECT_THAT(Owned<uint16_t>(DataType::kFloat16, {0, 1, 0x83FF, 0x3C00, 0x7BFF, 0xFC00}).CopyToFloat32(),
              ElementsAre(0, 0x1p-24F, -0x3FFp-24F, 1, 65504, -std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::isnan(Owned<uint16_t>(DataType::kFloat16, {0x7E00}).CopyToFloat32()[0]));
  EXPECT_TRUE(std::signbit(Owned<uint16_t>(DataType::kFloat16, {0x8000}).CopyToFloat32()[0]));
}

TEST(TensorTest, BytesCanBeTakenOut) {
  Tensor tensor = Owned<float>(DataType::kFloat32, {1, 2, 3, 4, 5, 6, 7, 8});
  const void* address = tensor.data().data();
  const std::string bytes = tensor.ReleaseData();
  EXPECT_EQ(bytes.data(), address);
  EXPECT_TRUE(tensor.data().empty());
}

}  // namespace
}  // namespace triad::client
