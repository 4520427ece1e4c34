#include "tests/conformance/conformance_test.h"

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/attention/reference_attention.h"
#include "core/attention/tiled_attention.h"
#include "core/base/check.h"
#include "core/base/cpu.h"

namespace triad {
namespace {

// The instruction set of this machine, and AVX2 where that is a different path.
std::vector<InstructionSet> TiledPaths() {
  const InstructionSet best = DetectInstructionSet();
  if (best > InstructionSet::kAvx2) return {best, InstructionSet::kAvx2};
  return {best};
}

std::string TiledName(InstructionSet isa) { return absl::StrCat("tiled_", Name(isa)); }

std::map<std::string, std::unique_ptr<AttentionKernel>> MakeKernels() {
  std::map<std::string, std::unique_ptr<AttentionKernel>> kernels;
  kernels["reference"] = std::make_unique<ReferenceAttention>();
  for (InstructionSet isa : TiledPaths()) {
    absl::StatusOr<std::unique_ptr<TiledAttention>> tiled = TiledAttention::Create(isa);
    TRIAD_CHECK(tiled.ok(), "the machine's own instruction sets have a kernel");
    kernels[TiledName(isa)] = *std::move(tiled);
  }
  return kernels;
}

}  // namespace

std::vector<std::string> KernelPaths() {
  std::vector<std::string> paths = {"reference"};
  for (InstructionSet isa : TiledPaths()) paths.push_back(TiledName(isa));
  return paths;
}

const AttentionKernel& KernelOf(const std::string& path) {
  static const auto* const kernels = new std::map<std::string, std::unique_ptr<AttentionKernel>>(MakeKernels());
  return *kernels->at(path);
}

std::string PathAndTypeName(const testing::TestParamInfo<PathAndType>& tested) {
  return absl::StrCat(std::get<0>(tested.param), "_", Name(std::get<1>(tested.param)));
}

}  // namespace triad
