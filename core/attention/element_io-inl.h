// Vectors of f32 from and to elements of a request: any type, any alignment, any count. Compiled once per instruction
// set, hence the unusual guard (Highway's own).
#if defined(TRIAD_CORE_ATTENTION_ELEMENT_IO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIAD_CORE_ATTENTION_ELEMENT_IO_INL_H_
#undef TRIAD_CORE_ATTENTION_ELEMENT_IO_INL_H_
#else
#define TRIAD_CORE_ATTENTION_ELEMENT_IO_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/check.h"
#include "core/tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: what packed rows and the columns of score tiles are rounded to.
using F32Vector = hn::CappedTag<float, 16>;
using F32 = hn::Vec<F32Vector>;
constexpr int64_t kMaxLanes = 16;

// Of `count` elements of T. Bounded, so that compilers see that a buffer of kMaxLanes holds them.
template <class T>
HWY_INLINE size_t TailBytes(int64_t count) {
  return static_cast<size_t>(std::clamp<int64_t>(count, 0, kMaxLanes)) * sizeof(T);
}

// 1 <= `count` <= lanes elements of type T at `address`; lanes past them are 0.
template <class T, class D>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const std::byte* address, int64_t count) {
  if (HWY_LIKELY(count == static_cast<int64_t>(hn::Lanes(d)))) return hn::LoadU(d, reinterpret_cast<const T*>(address));
  HWY_ALIGN T buffer[kMaxLanes] = {};
  std::memcpy(buffer, address, TailBytes<T>(count));
  return hn::Load(d, buffer);
}

template <class T, class D>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, std::byte* address, int64_t count) {
  if (HWY_LIKELY(count == static_cast<int64_t>(hn::Lanes(d)))) return hn::StoreU(v, d, reinterpret_cast<T*>(address));
  HWY_ALIGN T buffer[kMaxLanes];
  hn::Store(v, d, buffer);
  std::memcpy(address, buffer, TailBytes<T>(count));
}

// Which of `count` <= lanes bytes at `address` are 0; lanes past them are.
HWY_INLINE hn::Mask<F32Vector> IsZero(const std::byte* address, int64_t count) {
  const hn::Rebind<uint32_t, F32Vector> d32;
  const auto bytes = hn::PromoteTo(d32, LoadUpTo<uint8_t>(hn::Rebind<uint8_t, F32Vector>(), address, count));
  return hn::RebindMask(F32Vector(), hn::Eq(bytes, hn::Zero(d32)));
}

// One type per floating-point DType (kDType): how `count` <= lanes elements become a vector, and back (to nearest
// even).
struct F32Elements {
  static constexpr DType kDType = DType::kF32;
  static constexpr int64_t kBytes = 4;
  static HWY_INLINE F32 Load(const std::byte* address, int64_t count) {
    return LoadUpTo<float>(F32Vector(), address, count);
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* address, int64_t count) {
    StoreUpTo<float>(v, d, address, count);
  }
};

struct Bf16Elements {
  static constexpr DType kDType = DType::kBf16;
  static constexpr int64_t kBytes = 2;
  template <class D>
  static HWY_INLINE hn::Vec<D> Widen(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits) {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<uint32_t, D>(), bits)));
  }
  static HWY_INLINE F32 Load(const std::byte* address, int64_t count) {
    return Widen(F32Vector(), LoadUpTo<uint16_t>(hn::Rebind<uint16_t, F32Vector>(), address, count));
  }
  template <class D>
  static HWY_INLINE void Store(D, hn::Vec<D> v, std::byte* address, int64_t count) {
    const hn::Rebind<uint32_t, D> d32;
    const hn::Rebind<int32_t, D> di32;
    const hn::Rebind<uint16_t, D> d16;
    const auto bits = hn::BitCast(d32, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
    const auto nearest = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd), hn::Set(d32, 0x7fff)));
    const auto quiet_nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d32, 0x40));
    const auto is_number = hn::RebindMask(d32, hn::Eq(v, v));
    const auto rounded = hn::IfThenElse(is_number, nearest, quiet_nan);
    StoreUpTo<uint16_t>(hn::DemoteTo(d16, hn::BitCast(di32, rounded)), d16, address, count);
  }
};

struct F16Elements {
  static constexpr DType kDType = DType::kF16;
  static constexpr int64_t kBytes = 2;
#if HWY_TARGET <= HWY_AVX2  // F16C; lower bits are better targets
  template <class D>
  static HWY_INLINE hn::Vec<D> Widen(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
  static HWY_INLINE F32 Load(const std::byte* address, int64_t count) {
    return Widen(F32Vector(), LoadUpTo<uint16_t>(hn::Rebind<uint16_t, F32Vector>(), address, count));
  }
  template <class D>
  static HWY_INLINE void Store(D, hn::Vec<D> v, std::byte* address, int64_t count) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> df16;
    StoreUpTo<uint16_t>(hn::BitCast(d16, hn::DemoteTo(df16, v)), d16, address, count);
  }
#else  // Highway's emulation does not promise infinities and rounding
  static HWY_INLINE F32 Load(const std::byte* address, int64_t count) {
    HWY_ALIGN float buffer[kMaxLanes] = {};
    for (int64_t i = 0; i < count; ++i) buffer[i] = LoadElement(address + i * kBytes, DType::kF16);
    return hn::Load(F32Vector(), buffer);
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* address, int64_t count) {
    HWY_ALIGN float buffer[kMaxLanes];
    hn::Store(v, d, buffer);
    for (int64_t i = 0; i < count; ++i) StoreElement(address + i * kBytes, DType::kF16, buffer[i]);
  }
#endif
};

// sum + the products of two pairs of bf16, which lie in the bits of an f32: the lower ones first, each product and
// addition rounded once, denormals as zeros. In assembly, because Highway 1.0 has no target with it. Only where the CPU
// has AVX512-BF16 (StripShape::multiplies_bf16).
template <class V>
HWY_INLINE V AddBf16Products(V a, V b, V sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
#else
  TRIAD_CHECK(false, "only AVX-512 has products of bf16");
#endif
  return sum;
}

// Calls `call` with the elements of `dtype`, a floating-point one.
template <class Call>
HWY_INLINE void WithElements(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::kBf16:
      return call(Bf16Elements());
    case DType::kF16:
      return call(F16Elements());
    default:
      return call(F32Elements());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#endif  // TRIAD_CORE_ATTENTION_ELEMENT_IO_INL_H_
