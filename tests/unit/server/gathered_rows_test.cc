#include "server/gathered_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/support/cut_pieces.h"

namespace triad {
namespace {

std::vector<std::byte> RandomBytes(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

CutPieces Cut(const std::vector<std::byte>& bytes, uint32_t seed) {
  std::mt19937 random(seed);
  return CutPieces(bytes.data(), static_cast<int64_t>(bytes.size()),
                   [&] { return 1 + static_cast<int64_t>(random() % 300'000); });
}

bool Holds(const HeadRows& rows, const std::vector<std::byte>& bytes) {
  return rows.pieces == nullptr && std::memcmp(rows.data, bytes.data(), bytes.size()) == 0;
}

// The last item first: none depends on another.
void CopyAll(GatheredRows& gathered) {
  double flop = 0;
  for (int64_t item = gathered.item_count(); item-- > 0;) {
    EXPECT_GT(gathered.item_flop(item), 0);
    flop += gathered.item_flop(item);
    gathered.Copy(item);
  }
  EXPECT_EQ(flop, gathered.flop());
}

TEST(GatheredRowsTest, HoldsWhatThePiecesHeld) {
  for (const int64_t key_bytes : {1, 1000, 1 << 20, (1 << 20) + 1, 3'456'789}) {
    const std::vector<std::byte> keys = RandomBytes(key_bytes, 1);
    const std::vector<std::byte> values = RandomBytes(key_bytes * 2 / 3 + 1, 2);
    const CutPieces cut_keys = Cut(keys, 3);
    const CutPieces cut_values = Cut(values, 4);
    AttentionProblem problem;
    problem.key.pieces = &cut_keys.get();
    problem.value.pieces = &cut_values.get();
    GatheredRows gathered(problem);
    EXPECT_EQ(problem.key.pieces, nullptr) << "a plan sees a problem without pieces";
    EXPECT_GE(gathered.byte_size(), static_cast<int64_t>(keys.size() + values.size()));
    CopyAll(gathered);
    gathered.PutInto(problem);
    EXPECT_TRUE(Holds(problem.key, keys)) << key_bytes;
    EXPECT_TRUE(Holds(problem.value, values)) << key_bytes;
  }
}

TEST(GatheredRowsTest, LeavesAloneWhatIsNotInPieces) {
  const std::vector<std::byte> whole = RandomBytes(10, 1);
  const std::vector<std::byte> bytes = RandomBytes(2'000'000, 2);
  const CutPieces cut = Cut(bytes, 3);
  for (const bool key_is_cut : {false, true}) {
    AttentionProblem problem;
    (key_is_cut ? problem.key : problem.value).pieces = &cut.get();
    (key_is_cut ? problem.value : problem.key).data = whole.data();
    GatheredRows gathered(problem);
    EXPECT_EQ(gathered.item_count(), 2);
    CopyAll(gathered);
    gathered.PutInto(problem);
    EXPECT_TRUE(Holds(key_is_cut ? problem.key : problem.value, bytes));
    EXPECT_EQ((key_is_cut ? problem.value : problem.key).data, whole.data());
  }
}

}  // namespace
}  // namespace triad
