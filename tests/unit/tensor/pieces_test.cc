#include "core/tensor/pieces.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace triad {
namespace {

// Bytes 0, 1, 2... of which each piece is a part, in memory of its own.
class PiecesTest : public testing::Test {
 protected:
  explicit PiecesTest(const std::vector<int64_t>& sizes = {1, 0, 4, 2, 9}) {
    int next = 0;
    for (int64_t size : sizes) {
      memory_.emplace_back(static_cast<size_t>(size));
      for (std::byte& byte : memory_.back()) byte = static_cast<std::byte>(next++);
      pieces_.Add(memory_.back().data(), size);
    }
  }
  const std::byte* piece(size_t i) const { return memory_[i].data(); }

  std::vector<std::vector<std::byte>> memory_;
  Pieces pieces_;
};

void ExpectCounted(const std::byte* bytes, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(static_cast<int64_t>(bytes[i]), first + i);
}

TEST_F(PiecesTest, EveryRangeIsCopied) {
  ASSERT_EQ(pieces_.size(), 16);
  for (int64_t begin = 0; begin <= 16; ++begin) {
    for (int64_t count = 0; begin + count <= 16; ++count) {
      std::vector<std::byte> copy(static_cast<size_t>(count));
      pieces_.CopyTo(begin, count, copy.data());
      ExpectCounted(copy.data(), begin, count);
      const Pieces sub = pieces_.Sub(begin, count);
      ASSERT_EQ(sub.size(), count);
      sub.CopyTo(0, count, copy.data());
      ExpectCounted(copy.data(), begin, count);
    }
  }
}

TEST_F(PiecesTest, WhatLiesInOnePieceIsFoundThere) {
  EXPECT_EQ(pieces_.InPlace(0, 1), piece(0));
  EXPECT_EQ(pieces_.InPlace(1, 4), piece(2));
  EXPECT_EQ(pieces_.InPlace(3, 2), piece(2) + 2);
  EXPECT_EQ(pieces_.InPlace(3, 3), nullptr);
  EXPECT_EQ(pieces_.InPlace(15, 1), piece(4) + 8);
  EXPECT_EQ(pieces_.InPlace(4, 0), nullptr);
}

TEST_F(PiecesTest, OnlyRowsThatLieInTwoPiecesAreCopied) {
  std::vector<std::byte> spare(9);
  const std::byte* places[3];
  pieces_.Place({.begin = 1, .stride = 3, .row_bytes = 3, .count = 3}, spare.data(), places);
  EXPECT_EQ(places[0], piece(2));
  EXPECT_EQ(places[1], spare.data());
  ExpectCounted(spare.data(), 4, 3);
  EXPECT_EQ(places[2], piece(4));
  EXPECT_EQ(spare[3], std::byte{});
}

}  // namespace
}  // namespace triad
