// The machine's own limit, measured beside every timing: fused multiply-adds that never leave the registers.
#pragma once

namespace triad {

// FLOP/s of one core in a loop of independent f32 fused multiply-adds with the widest vectors: the best of `pieces` of
// 40 us.
double MeasureFmaPeak(int pieces);

}  // namespace triad
