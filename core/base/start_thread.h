// Threads as the system is to see them.
#pragma once

#include <pthread.h>
#include <sys/resource.h>

#include <string>
#include <thread>
#include <utility>

namespace triad {

// Runs `run` on a thread of its own. `top -H` and debuggers show the first 15 characters of `name`, the system's limit.
// `niceness` is added to the nice value of that thread alone, which is how Linux has it: of two threads of a cgroup
// that want one core, the nicer has a fifth less for each step; what the system does not grant changes nothing but
// time. Throws std::system_error when the system has no thread left.
template <class Run>
std::thread StartThread(std::string name, int niceness, Run run) {
  return std::thread([name = std::move(name), niceness, run = std::move(run)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    if (niceness > 0) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + niceness);
    run();
  });
}

}  // namespace triad
