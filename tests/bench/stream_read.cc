#include "tests/bench/stream_read.h"

#include "core/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/stream_read.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of all floats, so that no read can be left out.
template <int kStreams>
float ReadAll(const float* HWY_RESTRICT data, int64_t count) {
  const hn::CappedTag<float, 16> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t part = count / kStreams;
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (int64_t i = 0; i < part; i += 16) {
    for (int s = 0; s < kStreams; ++s) {
      const float* line = data + s * part + i;
      for (int64_t j = 0; j < 16; j += 2 * lanes) {
        sum0 = hn::Add(sum0, hn::LoadU(d, line + j));
        if (j + lanes < 16) sum1 = hn::Add(sum1, hn::LoadU(d, line + j + lanes));
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

float ReadStreams(const float* data, int64_t count, int streams) {
  switch (streams) {
    case 1:
      return ReadAll<1>(data, count);
    case 2:
      return ReadAll<2>(data, count);
    case 4:
      return ReadAll<4>(data, count);
    case 8:
      return ReadAll<8>(data, count);
    default:
      TRIAD_CHECK(false, "streams are 1, 2, 4 or 8");
      return 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(ReadStreams);

void ReadStreams(const std::byte* data, int64_t bytes, int streams) {
  volatile float sum = HWY_DYNAMIC_DISPATCH(ReadStreams)(reinterpret_cast<const float*>(data), bytes / 4, streams);
  static_cast<void>(sum);
}

}  // namespace triad
#endif  // HWY_ONCE
