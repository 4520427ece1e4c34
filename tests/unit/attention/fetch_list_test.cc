#include "core/attention/fetch_list.h"

#include <vector>

#include "gtest/gtest.h"

namespace triad {
namespace {

TEST(FetchListTest, CountsTheLinesOfEveryRowAndEndsWithTheLast) {
  Scratch scratch;
  const std::vector<std::byte> bytes(1000);
  FetchList list(/*capacity=*/3, scratch);
  list.Clear();
  EXPECT_EQ(list.lines(), 0);
  list.Fetch(5);
  list.Add({.data = bytes.data(), .stride_bytes = 100, .count = 3}, /*bytes=*/65);
  list.Add(bytes.data(), /*bytes=*/0);
  list.Add({.data = bytes.data(), .stride_bytes = 40, .count = 2, .dtype = DType::kBf16, .dims = 20});
  EXPECT_EQ(list.lines(), 3 * 2 + 2);
  list.Fetch(7);
  EXPECT_EQ(list.lines(), 1);
  list.Fetch(7);
  EXPECT_EQ(list.lines(), 0);
  list.Clear();
  for (int i = 0; i < 5; ++i) list.Add(bytes.data(), /*bytes=*/64);
  EXPECT_EQ(list.lines(), 3);  // what does not fit is left out
}

TEST(FetchPaceTest, FetchesItsPartWithinTheSteps) {
  Scratch scratch;
  const std::vector<std::byte> bytes(6400);
  FetchList list(/*capacity=*/1, scratch);
  list.Clear();
  list.Add(bytes.data(), /*bytes=*/6400);
  FetchPace half(&list, /*parts=*/2, /*steps=*/10);
  for (int i = 0; i < 10; ++i) half.Step();
  EXPECT_EQ(list.lines(), 50);
  FetchPace rest(&list, /*parts=*/1, /*steps=*/7);
  for (int i = 0; i < 7; ++i) rest.Step();
  EXPECT_EQ(list.lines(), 0);
  FetchPace(&list, /*parts=*/1, /*steps=*/0).Step();
  FetchPace(nullptr, /*parts=*/1, /*steps=*/7).Step();
}

}  // namespace
}  // namespace triad
