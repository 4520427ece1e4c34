#include "tests/conformance/conformance_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/fast_attention.h"
#include "core/attention/fused_attention.h"
#include "core/attention/onednn_attention.h"
#include "core/attention/reference_attention.h"
#include "core/base/check.h"
#include "core/base/cpu.h"

namespace triad {
namespace {

// The machine's instruction set, or the lower one that TRIAD_INSTRUCTION_SET names. A process has one
// (UseInstructionSet), so ctest runs this suite once for each.
InstructionSet TestedInstructionSet() {
  const InstructionSet best = DetectInstructionSet();
  const char* cap = std::getenv("TRIAD_INSTRUCTION_SET");
  if (cap == nullptr) return best;
  for (InstructionSet isa : {InstructionSet::kGeneric, InstructionSet::kAvx2, InstructionSet::kAvx512,
                             InstructionSet::kAvx512Bf16, InstructionSet::kAmxBf16}) {
    if (Name(isa) == cap) return std::min(isa, best);
  }
  TRIAD_CHECK(false, "TRIAD_INSTRUCTION_SET names an instruction set");
  return best;
}

std::map<std::string, std::unique_ptr<AttentionKernel>> MakeKernels() {
  const InstructionSet isa = TestedInstructionSet();
  TRIAD_CHECK(UseInstructionSet(isa).ok(), "nothing has decided on another instruction set");
  absl::StatusOr<std::unique_ptr<OneDnnAttention>> onednn = OneDnnAttention::Create(isa);
  TRIAD_CHECK(onednn.ok(), "every instruction set up to the machine's has a kernel");
  std::fprintf(stderr, "instruction set: %s\n", std::string(Name(isa)).c_str());
  std::map<std::string, std::unique_ptr<AttentionKernel>> kernels;
  kernels["reference"] = std::make_unique<ReferenceAttention>();
  kernels["fused"] = std::make_unique<FusedAttention>(isa);
  kernels["onednn"] = *std::move(onednn);
  return kernels;
}

}  // namespace

std::vector<std::string> KernelPaths() { return {"reference", "fused", "onednn"}; }

const AttentionKernel& KernelOf(const std::string& path) {
  static const auto* const kernels = new std::map<std::string, std::unique_ptr<AttentionKernel>>(MakeKernels());
  return *kernels->at(path);
}

std::string PathAndTypeName(const testing::TestParamInfo<PathAndType>& tested) {
  return absl::StrCat(std::get<0>(tested.param), "_", Name(std::get<1>(tested.param)));
}

}  // namespace triad
