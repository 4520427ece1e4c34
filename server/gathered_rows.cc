#include "server/gathered_rows.h"

#include <algorithm>
#include <utility>

#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kCopyBytes = 1 << 20;  // some 0.1 ms
// Work that copying a byte counts as: a core copies some 10 GB/s and computes some 80 GFLOP/s.
constexpr double kFlopPerCopiedByte = 8;
constexpr int64_t kAlignment = 64;  // of the values, as of the keys

int64_t SizeOf(const Pieces* pieces) { return pieces == nullptr ? 0 : pieces->size(); }

}  // namespace

GatheredRows::GatheredRows(AttentionProblem& problem)
    : key_(std::exchange(problem.key.pieces, nullptr)), value_(std::exchange(problem.value.pieces, nullptr)) {}

int64_t GatheredRows::byte_size() const { return value_begin() + SizeOf(value_); }

int64_t GatheredRows::value_begin() const { return RoundUp(SizeOf(key_), kAlignment); }

int64_t GatheredRows::item_count() const {
  return CeilDiv(SizeOf(key_), kCopyBytes) + CeilDiv(SizeOf(value_), kCopyBytes);
}

GatheredRows::Chunk GatheredRows::ChunkOf(int64_t item) const {
  const int64_t of_keys = CeilDiv(SizeOf(key_), kCopyBytes);
  const bool is_key = item < of_keys;
  const Pieces& from = is_key ? *key_ : *value_;
  const int64_t begin = (is_key ? item : item - of_keys) * kCopyBytes;
  return {.from = from,
          .begin = begin,
          .count = std::min(kCopyBytes, from.size() - begin),
          .to = is_key ? 0 : value_begin()};
}

double GatheredRows::item_flop(int64_t item) const {
  return kFlopPerCopiedByte * static_cast<double>(ChunkOf(item).count);
}

double GatheredRows::flop() const { return kFlopPerCopiedByte * static_cast<double>(SizeOf(key_) + SizeOf(value_)); }

void GatheredRows::Copy(int64_t item) {
  std::call_once(has_memory_, [this] { bytes_ = AlignedBytes(byte_size()); });
  const Chunk chunk = ChunkOf(item);
  chunk.from.CopyTo(chunk.begin, chunk.count, bytes_.data() + chunk.to + chunk.begin);
}

void GatheredRows::PutInto(AttentionProblem& problem) const {
  if (key_ != nullptr) problem.key.data = bytes_.data();
  if (value_ != nullptr) problem.value.data = bytes_.data() + value_begin();
}

}  // namespace triad
