// What both products of a few rows share. Compiled once per instruction set, hence the unusual guard (Highway's own).
#if defined(TRIAD_CORE_ATTENTION_ROW_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIAD_CORE_ATTENTION_ROW_PRODUCT_INL_H_
#undef TRIAD_CORE_ATTENTION_ROW_PRODUCT_INL_H_
#else
#define TRIAD_CORE_ATTENTION_ROW_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/attention/row_product.h"
#include "core/base/check.h"
#include "core/tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

constexpr int64_t kLineBytes = 64;

// Reads a byte of each line of rows [begin, end), as far as there are so many, before they are used. Only the
// hardware's own fetching keeps memory busy: a core's few miss buffers, full of lines that were asked for, make half of
// its pace (Zen 4). It follows lines read in their order, and runs ahead while a page of them or so is worked on.
HWY_INLINE void ReadInOrder(const SourceRows& rows, int64_t begin, int64_t end) {
  const int64_t bytes = rows.dims * ByteSize(rows.dtype);
  for (int64_t i = begin; i < std::min(end, rows.count); ++i) {
    const std::byte* row = rows.row(i);
    for (int64_t b = 0; b < bytes; b += kLineBytes) static_cast<void>(*static_cast<const volatile std::byte*>(row + b));
  }
}

// Calls `multiply` with the number of rows as a constant.
template <class Multiply>
HWY_INLINE void WithRows(int64_t rows, const Multiply& multiply) {
  switch (rows) {
    case 1:
      return multiply(std::integral_constant<int, 1>());
    case 2:
      return multiply(std::integral_constant<int, 2>());
    case 3:
      return multiply(std::integral_constant<int, 3>());
    case 4:
      return multiply(std::integral_constant<int, 4>());
    default:
      TRIAD_CHECK(false, "few rows are at most kFewRows");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#endif  // TRIAD_CORE_ATTENTION_ROW_PRODUCT_INL_H_
