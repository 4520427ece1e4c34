#include "core/layer/projection_plan.h"

#include <algorithm>
#include <iterator>

#include "core/attention/tile_geometry.h"
#include "core/base/dims.h"

namespace triad {
namespace {

int64_t PaddedRows(int64_t rows) {
  int64_t padded = 0;
  while (rows > 0) {
    const int64_t tile = kRowClasses[NextTileClass(rows)];
    padded += tile;
    rows -= tile;
  }
  return padded;
}

double FlopOf(const Projection& projection, int64_t rows, const ColumnBlock& block) {
  return 2 * static_cast<double>(PaddedRows(rows)) * static_cast<double>(block.padded_width) *
         static_cast<double>(projection.operand_stride());
}

std::vector<ProjectionItem> Cut(const Projection& projection, int64_t rows, int64_t span) {
  std::vector<ProjectionItem> items;
  const auto block_count = static_cast<int64_t>(projection.blocks().size());
  for (int64_t row = 0; row < rows; row += span) {
    ProjectionItem item{.row_begin = row, .row_end = std::min(row + span, rows)};
    for (int64_t block = 0; block < block_count; ++block) {
      item.block_end = block + 1;
      item.flop += FlopOf(projection, item.row_end - item.row_begin, projection.blocks()[block]);
      if (item.flop < kLeastItemFlop && item.block_end < block_count) continue;
      items.push_back(item);
      item.block_begin = item.block_end;
      item.flop = 0;
    }
  }
  return items;
}

}  // namespace

int NextTileClass(int64_t rows) {
  const int64_t padded = RoundUp(rows, kRowClasses[0]);
  const auto* const after = std::upper_bound(std::begin(kRowClasses), std::end(kRowClasses), padded);
  return static_cast<int>(after - std::begin(kRowClasses)) - 1;
}

std::vector<ProjectionItem> PlanProjection(const Projection& projection, int64_t rows) {
  const auto tile_flop = [&](int64_t tile) { return FlopOf(projection, tile, projection.blocks()[0]); };
  int64_t span = kTileRows;  // its halves down to kRowClasses[1] are classes too
  while (span > kRowClasses[1] && tile_flop(span) > kItemFlop) span /= 2;
  std::vector<ProjectionItem> items = Cut(projection, rows, span);
  while (items.size() < kEnoughItems && span > kRowClasses[1] && tile_flop(span / 2) >= kLeastItemFlop) {
    span /= 2;
    items = Cut(projection, rows, span);
  }
  return items;
}

double PlannedFlop(const Projection& projection, int64_t rows) {
  double flop = 0;
  for (const ProjectionItem& item : PlanProjection(projection, rows)) flop += item.flop;
  return flop;
}

}  // namespace triad
