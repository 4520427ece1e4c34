// Answers are written once, so what matters is that sums are read no more than once for it: columns, which strips have,
// are transposed 4 by 16 in registers and stored from there.
#include "core/attention/store_output.h"

#include <algorithm>
#include <limits>

#include "core/attention/pack_tile.h"
#include "core/base/dims.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/store_output.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// Stores what `sums` of dims [dim, dim + lanes) become.
template <class Elements, class D>
HWY_INLINE void StoreOutputs(D d, hn::Vec<D> sums, const float* added, int64_t dim, int64_t dims, OutputPlace place) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto output = hn::MulAdd(sums, hn::Set(d, place.factor), hn::Zero(d));  // -0 becomes +0
  if (place.factor == 0) output = hn::Zero(d);
  if (added != nullptr) output = hn::Add(output, hn::Load(d, added + dim));
  output = hn::IfThenElse(hn::IsNaN(output), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), output);
  Elements::Store(d, output, place.stored + dim * Elements::kBytes, std::min(lanes, dims - dim));
}

void StoreOutputRow(const OutputRow& row, OutputPlace place, DType dtype) {
  WithElements(dtype, [row, place](auto elements) HWY_ATTR {  // copies, which no store changes
    const F32Vector d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t dim = 0; dim < row.dims; dim += lanes) {
      StoreOutputs<decltype(elements)>(d, hn::Load(d, row.sums + dim), row.added, dim, row.dims, place);
    }
  });
}

void StoreOutputColumns(const OutputColumns& columns, DType dtype) {
  WithElements(dtype, [columns](auto elements) HWY_ATTR {
    const F32Vector d;
    const int64_t stride = columns.width;
    for (int64_t column = 0; column < columns.width; column += 4) {
      const OutputPlace* places = columns.places + column;
      const float* added[4] = {};
      for (int r = 0; columns.added != nullptr && r < 4; ++r) {
        if (places[r].stored != nullptr) added[r] = columns.added + (column + r) * RoundUp(columns.dims, kPackedStep);
      }
      for (int64_t dim = 0; dim < columns.dims; dim += static_cast<int64_t>(hn::Lanes(d))) {
        const auto sums_of = [&](int64_t i) HWY_ATTR { return columns.sums + (dim + i) * stride + column; };
        F32 rows[4];
        LoadColumns(d, sums_of, rows);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          if (places[r].stored == nullptr) continue;
          StoreOutputs<decltype(elements)>(d, rows[r], added[r], dim, columns.dims, places[r]);
        }
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(StoreOutputRow);
HWY_EXPORT(StoreOutputColumns);

void StoreOutputRow(const OutputRow& row, OutputPlace place, DType dtype) {
  HWY_DYNAMIC_DISPATCH(StoreOutputRow)(row, place, dtype);
}

void StoreOutputColumns(const OutputColumns& columns, DType dtype) {
  HWY_DYNAMIC_DISPATCH(StoreOutputColumns)(columns, dtype);
}

}  // namespace triad
#endif  // HWY_ONCE
