#include "core/base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace triad {
namespace {

constexpr int kMaxAffinityCores =
    1 << 20;  // far past any kernel's limit (NR_CPUS is at most 8192): ends the search below

// Cores in this process's affinity mask. cpu_set_t holds 1024; a machine with more answers EINVAL until the mask is
// large enough.
int AffinityCores() {
  for (int capacity = CPU_SETSIZE; capacity <= kMaxAffinityCores; capacity *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    std::vector<cpu_set_t> mask(bytes / sizeof(cpu_set_t) + 1);
    if (sched_getaffinity(/*pid=*/0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
    if (errno != EINVAL) break;
  }
  return 1;
}

// The file's text, empty when it cannot be read.
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// The smaller of two quotas of which 0 means none.
double TighterQuota(double a, double b) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  return std::min(a, b);
}

// Quota of the one group in `directory`, whichever version it is.
double GroupQuota(const std::string& directory) {
  const std::string cpu_max = ReadText(absl::StrCat(directory, "/cpu.max"));
  if (!cpu_max.empty()) return ParseCpuMax(cpu_max);
  // The same two numbers in two files, -1 for none.
  return ParseCpuMax(absl::StrCat(ReadText(absl::StrCat(directory, "/cpu.cfs_quota_us")), " ",
                                  ReadText(absl::StrCat(directory, "/cpu.cfs_period_us"))));
}

// The tightest quota of `group` ("/a/b") and its parents, below the hierarchy mounted at `mount`. A container often
// sees its own group mounted as the root, under a path that exists only outside: missing groups count as none.
double HierarchyQuota(const std::string& mount, absl::string_view group) {
  double quota = GroupQuota(mount);
  std::string directory = mount;
  for (absl::string_view name : absl::StrSplit(group, '/', absl::SkipEmpty())) {
    if (name == "..") return quota;  // the group lies outside what this namespace shows
    absl::StrAppend(&directory, "/", name);
    quota = TighterQuota(quota, GroupQuota(directory));
  }
  return quota;
}

#if defined(__x86_64__)
// The CPU has it, and the operating system saves its registers. Clang 14's __builtin_cpu_supports does not know it.
bool HasAmxBf16() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kAmxBf16AndTile = (1u << 22) | (1u << 24);  // Intel SDM, CPUID leaf 7, EDX
  constexpr unsigned kOsxsave = 1u << 27;                        // leaf 1, ECX
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kAmxBf16AndTile) != kAmxBf16AndTile) return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return false;
  constexpr unsigned kTileState = (1u << 17) | (1u << 18);  // of XCR0
  asm("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (eax & kTileState) == kTileState;
}
#endif

}  // namespace

CpuBudget DecideCpuBudget(int affinity_cores, double quota_cores) {
  affinity_cores = std::max(affinity_cores, 1);
  const std::string cores =
      absl::StrCat(affinity_cores, affinity_cores == 1 ? " core" : " cores", " in the affinity mask");
  if (!(quota_cores > 0) || quota_cores >= affinity_cores) return {.threads = affinity_cores, .reason = cores};
  return {.threads = std::max(1, static_cast<int>(std::floor(quota_cores))),
          .reason = absl::StrFormat("cgroup quota %.2f of %s", quota_cores, cores)};
}

double ReadCgroupQuota(const std::string& filesystem_root) {
  const std::string mounts = absl::StrCat(filesystem_root, "/sys/fs/cgroup");
  double quota = 0;
  // Lines such as "0::/user.slice" (v2) and "4:cpu,cpuacct:/docker/1f3a" (v1): hierarchy, controllers, group.
  const std::string cgroups = ReadText(absl::StrCat(filesystem_root, "/proc/self/cgroup"));
  for (absl::string_view line : absl::StrSplit(cgroups, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      quota = TighterQuota(quota, HierarchyQuota(mounts, fields[2]));
      continue;
    }
    for (absl::string_view controller : absl::StrSplit(fields[1], ',')) {
      if (controller != "cpu") continue;
      // Mounted under all its controllers' names; "cpu" is commonly a link to that.
      quota = TighterQuota(quota, HierarchyQuota(absl::StrCat(mounts, "/", fields[1]), fields[2]));
      quota = TighterQuota(quota, HierarchyQuota(absl::StrCat(mounts, "/cpu"), fields[2]));
    }
  }
  return quota;
}

CpuBudget ReadCpuBudget() { return DecideCpuBudget(AffinityCores(), ReadCgroupQuota(/*filesystem_root=*/"")); }

double ParseCpuMax(absl::string_view cpu_max) {
  const std::vector<absl::string_view> fields = absl::StrSplit(cpu_max, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &quota_us) || !absl::SimpleAtoi(fields[1], &period_us)) {
    return 0;  // "max" ends here too
  }
  if (quota_us <= 0 || period_us <= 0) return 0;
  return static_cast<double>(quota_us) / static_cast<double>(period_us);
}

absl::string_view Name(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::kGeneric:
      return "generic";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx512Bf16:
      return "avx512_bf16";
    case InstructionSet::kAmxBf16:
      return "amx_bf16";
  }
  return "generic";
}

InstructionSet DetectInstructionSet() {
#if defined(__x86_64__)
  // These ask the operating system too: an extension whose registers it does not save counts as absent.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::kGeneric;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return InstructionSet::kAvx2;
  if (!__builtin_cpu_supports("avx512bf16")) return InstructionSet::kAvx512;
  return HasAmxBf16() ? InstructionSet::kAmxBf16 : InstructionSet::kAvx512Bf16;
#else
  return InstructionSet::kGeneric;
#endif
}

}  // namespace triad
