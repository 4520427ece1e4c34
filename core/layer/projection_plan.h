// How the products of a projection are split between threads: pure arithmetic. No byte of an answer depends on it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/layer/projection.h"

namespace triad {

// Rows [row_begin, row_end) times blocks [block_begin, block_end).
struct ProjectionItem {
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t block_begin = 0;
  int64_t block_end = 0;
  double flop = 0;  // padding included
};

// Least work that is worth another item, some 0.3 ms of an AVX2 core: handing an item over costs 10-40 us at worst, and
// one token through a layer of 512 (25 MFLOP, its tile being of 16 rows) stays one item.
inline constexpr double kLeastItemFlop = 25e6;
// As many items keep the threads of a large host busy; more of them only read the weights more often.
inline constexpr size_t kEnoughItems = 64;

std::vector<ProjectionItem> PlanProjection(const Projection& projection, int64_t rows);
// The sum of its items.
double PlannedFlop(const Projection& projection, int64_t rows);

// Row class (an index) of the next tile where `rows` > 0 are left: the largest that is no larger than `rows` rounded
// up to 16. So fewer than 16 rows of a whole item are padding.
int NextTileClass(int64_t rows);

}  // namespace triad
