#include "core/attention/kernel_choice.h"

namespace triad {

absl::string_view Name(KernelChoice choice) {
  switch (choice) {
    case KernelChoice::kAuto:
      return "auto";
    case KernelChoice::kFused:
      return "fused";
    case KernelChoice::kOneDnn:
      return "onednn";
  }
  return "";
}

bool UsesOneDnn(KernelChoice choice, InstructionSet isa, DType dtype, bool few_rows) {
  if (choice != KernelChoice::kAuto) return choice == KernelChoice::kOneDnn;
  return dtype == DType::kBf16 && isa >= InstructionSet::kAmxBf16 && !few_rows;
}

}  // namespace triad
