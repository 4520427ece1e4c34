// How the fused kernel cuts a problem: pure arithmetic, shared by planning and running.
//
//            one block: 128 keys at absolute positions
//          +------------------------------+
//   rows   |  strip: up to 3 vectors      |   an item: up to 384 rows of one (sequence, kv head), which share a block's
//   (q)    +------------------------------+   keys and values while they are in L2
//          |  strip                       |
//          +------------------------------+
//
// Of many keys an item meets but one chunk, of 32 blocks; the last of the rows' chunks merges them all (split_rows.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/item_plan.h"
#include "core/attention/lane_product.h"

namespace triad {

// Keys of a block. A strip's scores, 128 x 24 x 4 bytes on AVX2, and a line of each value stay in L1 together. Part of
// every answer's bytes.
constexpr int64_t kFusedKeyBlock = 128;
// Blocks of 4096 keys, a chunk, are added up by themselves before they are merged with the chunks before, so that each
// may be an item of its own: other threads compute it, and smaller requests wait for no more than that. Part of the
// bytes too.
constexpr int64_t kFusedKeyChunk = 32 * kFusedKeyBlock;
constexpr int64_t ChunkOf(int64_t key) { return key / kFusedKeyChunk; }
constexpr KeyRange ChunkKeys(int64_t chunk) {
  return {.begin = chunk * kFusedKeyChunk, .end = (chunk + 1) * kFusedKeyChunk};
}
// Least work, some 0.1 ms of an AVX2 core, that is split into chunks. Rows fewer than 16 count as 16: they take as long
// as memory does.
constexpr double kLeastSplitFlop = 8e6;
constexpr double kLeastSplitRows = 16;
// Keys whose weights are added up as one tree (lane_softmax.h): what a strip computes begins and ends at multiples.
constexpr int64_t kKeyTree = 8;
// Every strip's width divides the step. Queries and outputs of 384 rows of 64 dims are 192 KiB of L2, beside a block's
// 64 KiB. Work is some 1.5 ms of an AVX2 core.
constexpr ItemRowsRule kFusedItems = {.step = 48, .most = 384, .flop = 1.25e8, .most_keys = kFusedKeyChunk};

// Rows [begin, begin + width) of an item, counted from its first; those past the item's end are computed and dropped.
struct RowStrip {
  int64_t begin = 0;
  int64_t width = 0;
};

// `rows` rows in as few strips as there can be, of about equal width.
std::vector<RowStrip> StripsOf(int64_t rows, const StripShape& shape);

// Work of an item, what its strips compute for nobody included.
double FusedFlopOf(const AttentionProblem& problem, const WorkItem& item, const StripShape& shape);

// Appends to `items` the chunks of `item`, each with an equal part of its work, so that they are taken one after the
// other and few results wait to be merged; `item` itself when its keys lie in one or its work is little.
void SplitItem(const AttentionProblem& problem, const WorkItem& item, std::vector<WorkItem>& items);

}  // namespace triad
