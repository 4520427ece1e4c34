// What a process has cost so far.
#pragma once

#include <sys/types.h>

namespace triad {

// Processor time of all threads of `pid`, a process of this user; ends this process when there is none.
double ProcessCpuSeconds(pid_t pid);

}  // namespace triad
