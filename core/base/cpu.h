// What this process may use of the machine: cores, and instruction sets.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace triad {

// How many threads may compute at once, and why.
struct CpuBudget {
  int threads = 1;     // >= 1
  std::string reason;  // for the log, such as "cgroup quota 1.50 of 64 cores in the affinity mask"
};

// The decision, from what was read: whole cores in the affinity mask, and the cgroup's quota in cores (<= 0: none). A
// fraction of a core does not carry a thread: 1.5 gives 1, and 0.5 gives 1 because there must be one.
CpuBudget DecideCpuBudget(int affinity_cores, double quota_cores);

// Reads the affinity mask and the cgroup CPU quota (v2's cpu.max or v1's cpu.cfs_quota_us, of this process's group and
// its parents).
CpuBudget ReadCpuBudget();

// The tightest such quota in cores, 0 when there is none. Reads <filesystem_root>/proc/self/cgroup and
// <filesystem_root>/sys/fs/cgroup:
// "" but in tests.
double ReadCgroupQuota(const std::string& filesystem_root);

// The quota in `cpu_max` (the text of a cgroup v2 cpu.max: "max 100000", "150000 100000") in cores; 0 when there is
// none or it cannot be read.
double ParseCpuMax(absl::string_view cpu_max);

// Instruction sets that decide between kernels, weakest first.
enum class InstructionSet { kGeneric, kAvx2, kAvx512, kAvx512Bf16, kAmxBf16 };

// "generic", "avx2", "avx512", "avx512_bf16", "amx_bf16".
absl::string_view Name(InstructionSet isa);

// The best that this CPU and operating system support.
InstructionSet DetectInstructionSet();

}  // namespace triad
