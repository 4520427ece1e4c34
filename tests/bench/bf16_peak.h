// As fma_peak.h, for CPUs that multiply bf16.
#pragma once

namespace triad {

// FLOP/s of one core in a loop of independent products of bf16 pairs that are added to f32 (VDPBF16PS): the best of
// `pieces` of 40 us. Only where DetectInstructionSet() is kAvx512Bf16 or more.
double MeasureBf16Peak(int pieces);

}  // namespace triad
