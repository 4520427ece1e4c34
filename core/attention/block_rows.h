// The keys and values of one block as the fused kernel's products read them: where they lie in the request if that
// will do, else packed.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "core/attention/pack_tile.h"
#include "core/base/scratch.h"

namespace triad {

// Keys and values from the block's first key on.
struct BlockRows {
  SourceRows keys;
  SourceRows values;
  ValueTraits value_traits;  // unless kAsTheyAre
  bool value_pairs = false;  // a row of values is that of two keys (PackBf16Pairs)

  // Those of keys [first, first + count), counted from the block's first; of pairs, `first` is even.
  BlockRows Rows(int64_t first, int64_t count) const;
};

// Which rows the products can take as they are. What is packed becomes f32, or stays bf16.
enum class InPlace {
  kF32,        // f32 that is worth reading so
  kBf16Pairs,  // keys of bf16 likewise, as pairs of dims; values become pairs of keys
  kAll,        // every type, anywhere
  kAllBf16,    // bf16, anywhere; stays so
};

enum class ReadValues {
  kAsTheyAre,
  kFinite,  // those that are not are read as 0
  kScaled,  // so are they, and the others multiplied by kHugeValueScale
};

// Borrows `problem` and `item`; its buffers are in the scratch it is given, valid until that is Reset.
class BlockReader {
 public:
  // For blocks of at most `block_keys` keys.
  BlockReader(const AttentionProblem& problem, const WorkItem& item, int64_t block_keys, InPlace in_place,
              Scratch& scratch);

  // Reads keys and values [keys.begin, keys.end), nothing else: those of the request if they can stay in place, else
  // packed, aligned, to f32 unless they are to be pairs. What it returns is valid until the next call.
  BlockRows Read(KeyRange keys, ReadValues values);

  // Whether Read of `keys` packs values that are read as they are.
  bool PacksValues(KeyRange keys) const {
    if (reads_anywhere()) return false;
    return in_place_ == InPlace::kBf16Pairs || !StaysInPlace(SourceOf(keys).values);
  }

  // Where keys and values [keys.begin, keys.end) lie, which is not in pieces.
  BlockRows SourceOf(KeyRange keys) const;

 private:
  // Rows of the item's kv heads: of the first one's dims, the others' behind them.
  struct Place {
    const HeadRows& rows;
    int64_t begin;  // the sequence's, in elements
    int64_t dims;
  };
  Place KeyPlace() const { return {problem_.key, sequence_.key_begin, problem_.qk_head_dim}; }
  Place ValuePlace() const { return {problem_.value, sequence_.value_begin, problem_.v_head_dim}; }
  int64_t FirstByte(const Place& place, KeyRange keys) const;
  SourceRows RowsAt(const std::byte* data, const Place& place, KeyRange keys) const;
  // Of rows that lie in pieces: where each begins, and the few that lie in two.
  struct PlacedRows {
    const std::byte** places = nullptr;  // made when first needed
    std::byte* copied = nullptr;
  };
  SourceRows Placed(const Place& place, KeyRange keys, PlacedRows& placed);
  bool StaysInPlace(const SourceRows& rows) const;
  // Rows packed to `packed`, which is made when first needed.
  SourceRows Packed(const SourceRows& rows, float*& packed);
  SourceRows PackedPairs(const SourceRows& values);
  bool reads_anywhere() const { return in_place_ == InPlace::kAll || in_place_ == InPlace::kAllBf16; }
  bool keeps_bf16() const { return in_place_ == InPlace::kBf16Pairs || in_place_ == InPlace::kAllBf16; }

  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  Scratch& scratch_;
  const int64_t block_keys_;
  const InPlace in_place_;
  PlacedRows placed_keys_;
  PlacedRows placed_values_;
  float* keys_ = nullptr;    // [block_keys, qk_head_dim rounded up]; made when first needed
  float* values_ = nullptr;  // [block_keys, v_head_dim rounded up]
};

}  // namespace triad
