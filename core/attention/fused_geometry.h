// How the fused kernel cuts a problem: pure arithmetic, shared by planning and running.
//
//            one block: 128 keys at absolute positions
//          +------------------------------+
//   rows   |  strip: up to 3 vectors      |   an item: up to 384 rows of one (sequence, kv head), which share a block's
//   (q)    +------------------------------+   keys and values while they are in L2
//          |  strip                       |
//          +------------------------------+
//
// Of many keys an item meets but a part, a chunk of 32 blocks or less; the last of the rows' parts merges them all
// (split_rows.h).
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
// bytes too. Few rows leave each block by itself, and so their items may be smaller parts.
constexpr int64_t kFusedKeyChunk = 32 * kFusedKeyBlock;
constexpr int64_t ChunkOf(int64_t key) { return key / kFusedKeyChunk; }
// Least work, some 0.1 ms of an AVX2 core, that is split into parts. Rows fewer than 16 count as 16: they take as long
// as memory does.
constexpr double kLeastSplitFlop = 8e6;
constexpr double kLeastSplitRows = 16;
// Few rows of as many kv heads are computed at once where heads lie together in tokens, so that keys and values are one
// stream; read head by head, pieces of 256 bytes of each 2 KiB, they come at a quarter of memory's pace. Bounds what is
// kept of them in L1.
constexpr int64_t kMostHeadsTogether = 32;
// Least keys and values of a part of few rows, some 0.1 ms of memory's time.
constexpr int64_t kPartBytes = 1 << 20;
// Keys whose weights are added up as one tree (lane_softmax.h): what a strip computes begins and ends at multiples.
constexpr int64_t kKeyTree = 8;
// Every strip's width divides the step. Queries and outputs of 384 rows of 64 dims are 192 KiB of L2, beside a block's
// 64 KiB. Work is some 1.5 ms of an AVX2 core.
constexpr ItemRowsRule kFusedItems = {.step = 48, .most = 384, .flop = 1.25e8, .most_keys = kFusedKeyChunk};
// Where tokens lie a stride apart every item packs the blocks it meets, each from as many places as it has tokens.
// Twice the work makes twice the rows that share a block: 2048 keys take 0.96 of the time. Not of requests whose rows
// see more keys than a chunk: for their items smaller ones wait all the time.
constexpr double kStridedItemFlop = 2 * kFusedItems.flop;
inline bool TokensLieApart(const AttentionProblem& problem) { return problem.key.token_stride > problem.qk_head_dim; }
ItemRowsRule FusedItemsOf(const AttentionProblem& problem);

// Keys that an item meets at once: a block, or of few rows a whole part, whose keys are read before its values. Block
// by block, either stream would have to start anew every 32 KiB.
int64_t KeysAtOnce(const AttentionProblem& problem, const WorkItem& item);

// Whether every item has few rows (row_product.h).
bool HasFewRows(const AttentionProblem& problem);

// Rows [begin, begin + width) of an item, counted from its first; those past the item's end are computed and dropped.
struct RowStrip {
  int64_t begin = 0;
  int64_t width = 0;
};

// `rows` rows in as few strips as there can be, of about equal width.
std::vector<RowStrip> StripsOf(int64_t rows, const StripShape& shape);

// Work of an item, what its strips compute for nobody included.
double FusedFlopOf(const AttentionProblem& problem, const WorkItem& item, const StripShape& shape);

// Whether `next`, the item of the kv head after `item`'s, is to join it: few rows whose keys and values lie beside
// those of `item` in each token.
bool ReadsBeside(const AttentionProblem& problem, const WorkItem& item, const WorkItem& next);

// Appends to `items` the parts of `item`, each with an equal share of its work, so that they are taken one after the
// other and few results wait to be merged; `item` itself when its keys lie in one or its work is little.
void SplitItem(const AttentionProblem& problem, const WorkItem& item, std::vector<WorkItem>& items);

}  // namespace triad
