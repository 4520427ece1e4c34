// Memory that will be read soon, fetched a few cache lines at a time between other work. All at once they would fill
// the core's few miss buffers and stall it for as long as memory takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/attention/pack_tile.h"
#include "core/base/dims.h"
#include "core/base/scratch.h"

namespace triad {

class FetchList {
 public:
  // Holds at most `capacity` entries, in `scratch`.
  FetchList(int64_t capacity, Scratch& scratch) : entries_(scratch.Allocate<Entry>(capacity)), capacity_(capacity) {}

  void Clear() { count_ = next_ = lines_ = row_ = offset_ = 0; }

  // Rows past the capacity are not fetched: nothing depends on it but time.
  void Add(const SourceRows& rows) { Add(rows, rows.dims * ByteSize(rows.dtype)); }
  // `bytes` of each row.
  void Add(const SourceRows& rows, int64_t bytes) {
    if (bytes <= 0 || rows.count <= 0 || count_ == capacity_) return;
    entries_[count_++] = {.rows = rows, .bytes = bytes};
    lines_ += rows.count * LinesOf(bytes);
  }
  void Add(const std::byte* data, int64_t bytes) { Add({.data = data, .count = 1}, bytes); }

  // Lines that are left.
  int64_t lines() const { return lines_; }

  // Fetches the next `count` lines, or all that are left.
  void Fetch(int64_t count) {
    count = std::min(count, lines_);
    lines_ -= count;
    for (; count > 0; --count) {
      const Entry& entry = entries_[next_];
      __builtin_prefetch(entry.rows.row(row_) + offset_, 0, /*locality=*/2);  // to L2
      offset_ += kLine;
      if (offset_ < entry.bytes) continue;
      offset_ = 0;
      if (++row_ < entry.rows.count) continue;
      row_ = 0;
      ++next_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  static int64_t LinesOf(int64_t bytes) { return (bytes + kLine - 1) / kLine; }

  struct Entry {
    SourceRows rows;
    int64_t bytes;  // of each row
  };
  Entry* const entries_;
  const int64_t capacity_;
  int64_t count_ = 0;
  int64_t lines_ = 0;   // left
  int64_t next_ = 0;    // what is fetched next: this entry,
  int64_t row_ = 0;     // this row,
  int64_t offset_ = 0;  // from this byte on
};

// Spreads fetching over the steps of a loop.
class FetchPace {
 public:
  // 1 / `parts` of what is left in `list` (null: nothing) within `steps`.
  FetchPace(FetchList* list, int64_t parts, int64_t steps)
      : list_(list), lines_(list == nullptr || steps == 0 ? 0 : CeilDiv(list->lines(), parts * steps)) {}
  void Step() {
    if (lines_ > 0) list_->Fetch(lines_);
  }

 private:
  FetchList* const list_;
  const int64_t lines_;  // of each step
};

}  // namespace triad
