// Elementary functions on vectors of scores. Compiled once per instruction set, hence the unusual guard (Highway's
// own).
#if defined(TRIAD_CORE_ATTENTION_SCORE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIAD_CORE_ATTENTION_SCORE_MATH_INL_H_
#undef TRIAD_CORE_ATTENTION_SCORE_MATH_INL_H_
#else
#define TRIAD_CORE_ATTENTION_SCORE_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^x to f32 accuracy for x <= 127. Below -126 exactly 0 (denormals would be slow); NaN stays NaN.
template <class D, class V>
HWY_INLINE V Exp2(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  // 1.5 * 2^23 + 127: adding it rounds x to an integer and leaves that, with f32's exponent bias, in the low bits.
  const V magic = hn::Set(d, 12583039.0f);
  const V biased = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(biased, magic));  // in [-0.5, 0.5]
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, biased)));
  // Minimax polynomial for 2^f on [-0.5, 0.5], degree 5: relative error below 2e-7.
  V p = hn::MulAdd(f, hn::Set(d, 0.00133908634f), hn::Set(d, 0.00967603192f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555035711f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240221075f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147188f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  // A product, not an addition to the exponent: that would turn some NaN into numbers.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, power));
}

// tanh to f32 accuracy; NaN stays NaN.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  // Small: x + x^3 P(x^2), the coefficients of Cephes' tanhf (Moshier), for |x| < 0.625.
  const V z = hn::Mul(x, x);
  V p = hn::MulAdd(z, hn::Set(d, -5.70498872745e-3f), hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
  const V small = hn::MulAdd(hn::Mul(p, z), x, x);
  // Large: 1 - 2 / (e^(2|x|) + 1). From 10 on it is 1 in f32; clamped by a comparison that lets NaN through.
  const V ten = hn::Set(d, 10.0f);
  const V clamped = hn::IfThenElse(hn::Gt(magnitude, ten), ten, magnitude);
  const V exponential = Exp2(d, hn::Mul(clamped, hn::Set(d, 2.88539008f)));  // 2 * log2(e)
  const V one = hn::Set(d, 1.0f);
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(exponential, one)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
}

template <class D>
HWY_INLINE hn::Vec<D> MinusInfinity(D d) {
  return hn::Set(d, -std::numeric_limits<float>::infinity());
}

// The rules of score_modifiers.h. Each applies `scale` first.
template <class D, class V>
HWY_INLINE V Capped(D d, V score, float scale, float cap) {
  // Divided, not multiplied by scale / cap, which overflows for the smallest caps.
  const V ratio = hn::Div(hn::Mul(score, hn::Set(d, scale)), hn::Set(d, cap));
  return hn::Mul(hn::Set(d, cap), Tanh(d, ratio));
}

template <class D, class V>
HWY_INLINE V MinusDistance(D d, V score, float scale, V distance, V slope) {
  return hn::NegMulAdd(hn::Abs(distance), slope, hn::Mul(score, hn::Set(d, scale)));
}

template <class D, class V>
HWY_INLINE V PlusBias(D d, V score, float scale, V bias) {
  const auto hidden = hn::Eq(bias, MinusInfinity(d));
  return hn::IfThenElse(hidden, bias, hn::MulAdd(score, hn::Set(d, scale), bias));
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#endif  // TRIAD_CORE_ATTENTION_SCORE_MATH_INL_H_
