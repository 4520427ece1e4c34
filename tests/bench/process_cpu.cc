#include "tests/bench/process_cpu.h"

#include <time.h>

#include "core/base/check.h"

namespace triad {

double ProcessCpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec used = {};
  TRIAD_CHECK(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0, "the process runs");
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace triad
