// The loop over key blocks. For each block, and each group of rows:
//   scores = queries . keys;  modifiers;  weights = 2^((score - block maximum) * factor) and their sums;
//   output = output * keep + (weights . values) * add: every block is a partial result with a maximum of its own
// (online softmax; Milakov & Gimelshein 2018, arXiv:1805.02867). Blocks sit at absolute positions and merge in order,
// and hidden keys add exact zeros, so what a row adds up, and in which order, does not depend on the rows beside it
// (but for the signs of zeros and of NaN, which store_output.h makes one).
#include "core/attention/fused_item.h"

#include <algorithm>

#include "core/attention/few_rows.h"
#include "core/attention/fused_geometry.h"
#include "core/attention/key_range.h"
#include "core/attention/lane_strip.h"
#include "core/base/dims.h"

namespace triad {
namespace {

int64_t BlocksOf(KeyRange keys) { return CeilDiv(keys.end, kFusedKeyBlock) - keys.begin / kFusedKeyBlock; }

// Whether a chunk of `keys` ends at `end`, the end of a block's part of them; not where they lie in one.
bool EndsChunk(int64_t end, KeyRange keys) {
  return ChunkOf(keys.begin) != ChunkOf(keys.end - 1) && (end == keys.end || end % kFusedKeyChunk == 0);
}

// Keys and values of the first block and of the next, queries; bias, keep and output of every row of a strip.
constexpr int64_t kMostAhead = 5 + 3 * 48;

}  // namespace

FusedItem::FusedItem(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                     const StripShape& shape, Scratch& scratch)
    : item_(item),
      outputs_(outputs),
      shape_(shape),
      rows_(problem, item, outputs, scratch),
      keys_at_once_(KeysAtOnce(problem, item)),
      reader_(problem, item, keys_at_once_, InPlaceOf(), scratch),
      ahead_(kMostAhead, scratch) {
  if (has_few_rows()) {
    groups_.push_back(std::make_unique<FewRows>(rows_, keys_at_once_, multiplies_bf16(), scratch));
  } else {
    const StripBuffers buffers = StripBuffersFor(rows_, shape.unit * shape.most_units, scratch);
    for (const RowStrip& strip : StripsOf(rows_.count(), shape)) {
      groups_.push_back(std::make_unique<LaneStrip>(rows_, strip, multiplies_bf16(), buffers, scratch));
    }
  }
  for (const std::unique_ptr<RowGroup>& group : groups_) seen_ = Cover(seen_, group->seen());
  seen_.begin = seen_.begin / kKeyTree * kKeyTree;  // keys before the first that is seen are hidden, but there
}

InPlace FusedItem::InPlaceOf() const {
  if (has_few_rows()) return multiplies_bf16() ? InPlace::kAllBf16 : InPlace::kAll;
  return multiplies_bf16() ? InPlace::kBf16Pairs : InPlace::kF32;
}

void FusedItem::Run() {
  if (item_.split == nullptr) {
    RunRows();
  } else {
    RunPart();
  }
}

// Values are taken for numbers whose sums are numbers, and nearly always are. A value that is none would have spoilt
// every row, those too from which it is hidden (0 * NaN is NaN): whoever finds that starts again with more care. Rows
// whose sums are no numbers even then are added up once more, smaller; only they, for the others lose what is small.
void FusedItem::RunRows() {
  float value_scale = 1;
  RunBlocks(seen_, ReadValues::kAsTheyAre);
  if (item_.kv_heads > 1 && !IsFinite()) return RunHeadsAlone();
  if (!IsFinite() && RunBlocks(seen_, ReadValues::kFinite) && !IsFinite()) {
    for (const std::unique_ptr<RowGroup>& group : groups_) group->HoldNumbers();
    RunBlocks(seen_, ReadValues::kScaled);
    value_scale = kHugeValueScale;
  }
  Finish(value_scale);
}

// Where some kv head needs the care, each is an item of its own: what packs values, and adds up those that are no
// numbers, knows but one.
void FusedItem::RunHeadsAlone() {
  Scratch scratch;  // reset for each head: of up to 32 the item's own would keep all, for the thread's life
  WorkItem alone = item_;
  alone.kv_heads = 1;
  alone.split = nullptr;
  for (; alone.kv_head < item_.kv_head + item_.kv_heads; ++alone.kv_head) {
    scratch.Reset();
    FusedItem(rows_.problem(), alone, outputs_, shape_, scratch).Run();
  }
}

// Whoever is last merges all parts, or computes all the rows when some sum is no number, here or in another part.
void FusedItem::RunPart() {
  SplitRows& split = *item_.split;
  const KeyRange keys = Intersection(seen_, split.KeysOf(item_.part));
  int64_t count = 0;
  for (const std::unique_ptr<RowGroup>& group : groups_) count += group->part_floats(BlocksOf(keys));
  float* result = split.NewResultOf(item_.part, count);
  for (const std::unique_ptr<RowGroup>& group : groups_) {
    group->BeginPart(result);
    result += group->part_floats(BlocksOf(keys));
  }
  RunBlocks(keys, ReadValues::kAsTheyAre);
  for (const std::unique_ptr<RowGroup>& group : groups_) group->EndPart();
  const SplitRows::Outcome outcome = split.Arrive(IsFinite());
  if (outcome == SplitRows::Outcome::kOthersAreLeft) return;
  if (outcome == SplitRows::Outcome::kAllCount) MergeParts(split);
  split.DropResults();
  if (outcome == SplitRows::Outcome::kAllCount && IsFinite()) return Finish(/*value_scale=*/1);
  RunRows();
}

void FusedItem::MergeParts(const SplitRows& split) {
  for (const std::unique_ptr<RowGroup>& group : groups_) group->Start();
  for (int64_t part = split.first_part(); part < split.end_part(); ++part) {
    const KeyRange keys = Intersection(seen_, split.KeysOf(part));
    const float* result = split.ResultOf(part);
    for (const std::unique_ptr<RowGroup>& group : groups_) {
      group->AddPart(result, BlocksOf(keys));
      result += group->part_floats(BlocksOf(keys));
    }
    if (EndsChunk(keys.end, seen_)) EndChunk();
  }
}

void FusedItem::EndChunk() {
  for (const std::unique_ptr<RowGroup>& group : groups_) group->EndChunk();
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
    return Intersection({.begin = first, .end = first + keys_at_once_}, keys_of_run);
  };
  const int64_t first_block = keys_of_run.begin / keys_at_once_ * keys_at_once_;
  ahead_.Clear();
  groups_.front()->ListReads(block_at(first_block), ahead_);
  const int64_t lines_of_rows = ahead_.lines();
  ListBlock(block_at(first_block));
  // The first rows wait for queries and keys, and values come while those are multiplied; but what is packed is read
  // before.
  const int64_t lines_of_block = ahead_.lines() - lines_of_rows;
  ahead_.Fetch(lines_of_rows + (reader_.PacksValues(block_at(first_block)) ? lines_of_block : lines_of_block / 2));
  rows_.ForgetNonFiniteValues();
  for (const std::unique_ptr<RowGroup>& group : groups_) group->Start();
  const auto parts = static_cast<int64_t>(groups_.size());
  bool has_huge = false;
  for (int64_t first = first_block; first < keys_of_run.end; first += keys_at_once_) {
    const KeyRange keys = block_at(first);
    const BlockRows rows = reader_.Read(keys, values);
    has_huge |= rows.value_traits.has_huge;
    const KeyRange next = block_at(first + keys_at_once_);
    for (int64_t i = 0; i < parts; ++i) {
      RowGroup& group = *groups_[static_cast<size_t>(i)];
      KeyRange part = Intersection(group.seen(), keys);
      if (IsEmpty(part)) continue;
      part.begin = part.begin / kKeyTree * kKeyTree;
      ListBlock(PartOf(next, i, parts));
      if (i + 1 < parts) {
        groups_[static_cast<size_t>(i + 1)]->ListReads(keys, ahead_);
      } else {
        groups_[0]->ListReads(next, ahead_);
      }
      group.AddBlock(part, rows.Rows(part.begin - keys.begin, Length(part)), ahead_);
      ahead_.Clear();
    }
    if (EndsChunk(keys.end, keys_of_run)) EndChunk();
  }
  return has_huge;
}

void FusedItem::ListBlock(KeyRange keys) {
  if (has_few_rows()) return;  // which look ahead themselves
  const BlockRows block = reader_.SourceOf(keys);
  ahead_.Add(block.keys);
  ahead_.Add(block.values);
}

}  // namespace triad
