// Which kernel computes what.
#pragma once

#include "absl/strings/string_view.h"
#include "core/base/cpu.h"
#include "core/tensor/dtype.h"

namespace triad {

// What an operator may ask for.
enum class KernelChoice { kAuto, kFused, kOneDnn };

// "auto", "fused", "onednn".
absl::string_view Name(KernelChoice choice);

// Whether problems of `dtype` go to oneDNN's tiles rather than to the fused kernel. Of its own accord only bf16 where
// the CPU has tiles for it (AMX), which the fused kernel has not; not those of few rows (HasFewRows), which wait for
// memory.
bool UsesOneDnn(KernelChoice choice, InstructionSet isa, DType dtype, bool few_rows);

}  // namespace triad
