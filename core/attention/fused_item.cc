// The loop over key blocks. For each block, and each group of rows:
//   scores = queries . keys;  modifiers;  weights = 2^((score - block maximum) * factor) and their sums;
//   output = output * keep + (weights . values) * add: every block is a partial result with a maximum of its own
// (online softmax; Milakov & Gimelshein 2018, arXiv:1805.02867). Blocks sit at absolute positions and merge in order,
// and hidden keys add exact zeros, so what a row adds up, and in which order, does not depend on the rows beside it.
#include "core/attention/fused_item.h"

#include <algorithm>

#include "core/attention/few_rows.h"
#include "core/attention/fused_geometry.h"
#include "core/attention/key_range.h"
#include "core/attention/lane_strip.h"

namespace triad {
namespace {

constexpr int64_t kMostAhead = 3 + 3 * 48;  // keys, values, queries; bias, keep and output of every row of a strip

}  // namespace

FusedItem::FusedItem(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                     const StripShape& shape, Scratch& scratch)
    : item_(item),
      rows_(problem, item, outputs, scratch),
      reader_(problem, item, kFusedKeyBlock, rows_.count() <= kFewRows ? InPlace::kAll : InPlace::kF32, scratch),
      ahead_(kMostAhead, scratch) {
  if (rows_.count() <= kFewRows) {
    groups_.push_back(std::make_unique<FewRows>(rows_, scratch));
  } else {
    const StripBuffers buffers = StripBuffersFor(rows_, shape.unit * shape.most_units, scratch);
    for (const RowStrip& strip : StripsOf(rows_.count(), shape)) {
      groups_.push_back(std::make_unique<LaneStrip>(rows_, strip, buffers, scratch));
    }
  }
  for (const std::unique_ptr<RowGroup>& group : groups_) seen_ = Cover(seen_, group->seen());
  seen_.begin = seen_.begin / kKeyTree * kKeyTree;  // keys before the first that is seen are hidden, but there
}

void FusedItem::Run() {
  if (item_.split == nullptr) {
    RunRows();
  } else {
    RunChunk();
  }
}

// Values are taken for numbers whose sums are numbers, and nearly always are. A value that is none would have spoilt
// every row, those too from which it is hidden (0 * NaN is NaN): whoever finds that starts again with more care.
void FusedItem::RunRows() {
  float value_scale = 1;
  RunBlocks(seen_, ReadValues::kAsTheyAre);
  if (!IsFinite() && !RunBlocks(seen_, ReadValues::kFinite)) {
    RunBlocks(seen_, ReadValues::kScaled);
    value_scale = kHugeValueScale;
  }
  Finish(value_scale);
}

// Whoever is last merges all chunks, or computes all the rows when some sum is no number, here or in another chunk.
void FusedItem::RunChunk() {
  RunBlocks(Intersection(seen_, ChunkKeys(item_.chunk)), ReadValues::kAsTheyAre);
  SplitRows& split = *item_.split;
  int64_t count = 0;
  for (const std::unique_ptr<RowGroup>& group : groups_) count += group->chunk_floats();
  float* result = split.NewResultOf(item_.chunk, count);
  for (const std::unique_ptr<RowGroup>& group : groups_) {
    group->StoreChunk(result);
    result += group->chunk_floats();
  }
  const SplitRows::Outcome outcome = split.Arrive(IsFinite());
  if (outcome == SplitRows::Outcome::kOthersAreLeft) return;
  if (outcome == SplitRows::Outcome::kAllCount) MergeChunks(split);
  split.DropResults();
  if (outcome == SplitRows::Outcome::kAllCount && IsFinite()) return Finish(/*value_scale=*/1);
  RunRows();
}

void FusedItem::MergeChunks(const SplitRows& split) {
  for (const std::unique_ptr<RowGroup>& group : groups_) group->Start();
  for (int64_t chunk = split.first_chunk(); chunk < split.end_chunk(); ++chunk) {
    const float* result = split.ResultOf(chunk);
    for (const std::unique_ptr<RowGroup>& group : groups_) {
      group->AddChunk(result);
      result += group->chunk_floats();
    }
  }
}

void FusedItem::Finish(float value_scale) {
  for (const std::unique_ptr<RowGroup>& group : groups_) group->Finish(value_scale);
}

bool FusedItem::IsFinite() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const std::unique_ptr<RowGroup>& group) { return group->IsFinite(); });
}

bool FusedItem::RunBlocks(KeyRange keys_of_run, ReadValues values) {
  const auto block_at = [&](int64_t first) {
    return Intersection({.begin = first, .end = first + kFusedKeyBlock}, keys_of_run);
  };
  const int64_t first_block = keys_of_run.begin / kFusedKeyBlock * kFusedKeyBlock;
  ListBlock(block_at(first_block));
  ahead_.Fetch(ahead_.lines());
  rows_.ForgetNonFiniteValues();
  for (const std::unique_ptr<RowGroup>& group : groups_) group->Start();
  const auto parts = static_cast<int64_t>(groups_.size());
  const bool has_chunks = ChunkOf(keys_of_run.begin) != ChunkOf(keys_of_run.end - 1);
  for (int64_t first = first_block; first < keys_of_run.end; first += kFusedKeyBlock) {
    const KeyRange keys = block_at(first);
    const BlockRows rows = reader_.Read(keys, values);
    if (rows.value_traits.has_huge && values == ReadValues::kFinite) return false;
    const KeyRange next = block_at(first + kFusedKeyBlock);
    for (int64_t i = 0; i < parts; ++i) {
      RowGroup& group = *groups_[static_cast<size_t>(i)];
      KeyRange part = Intersection(group.seen(), keys);
      if (IsEmpty(part)) continue;
      part.begin = part.begin / kKeyTree * kKeyTree;
      BlockRows seen = rows;
      for (SourceRows* source : {&seen.keys, &seen.values}) {
        source->data += (part.begin - keys.begin) * source->stride_bytes;
        source->count = Length(part);
      }
      ListBlock(PartOf(next, i, parts));
      if (i + 1 < parts) {
        groups_[static_cast<size_t>(i + 1)]->ListReads(keys, ahead_);
      } else {
        groups_[0]->ListReads(next, ahead_);
      }
      group.AddBlock(part, seen, ahead_);
    }
    if (has_chunks && (IsEmpty(next) || ChunkOf(next.begin) != ChunkOf(first))) {
      for (const std::unique_ptr<RowGroup>& group : groups_) group->EndChunk();
    }
  }
  return true;
}

void FusedItem::ListBlock(KeyRange keys) {
  const BlockRows block = reader_.SourceOf(keys);
  ahead_.Clear();
  ahead_.Add(block.keys);
  ahead_.Add(block.values);
}

}  // namespace triad
