#include "server/metrics_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace triad {
namespace {

using prometheus::MetricType;

prometheus::MetricFamily One(const std::string& name, const std::string& help, MetricType type, double value) {
  prometheus::ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

// Fields of /proc/self/stat after the program's name, which may hold spaces: index 0 is field 3 of proc(5), the state.
std::vector<std::string> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(line.substr(name_end + 2), ' ');
}

std::optional<double> Field(const std::vector<std::string>& stat, size_t number_in_proc5) {
  constexpr size_t kFirst = 3;
  double value = 0;
  if (stat.size() <= number_in_proc5 - kFirst || !absl::SimpleAtod(stat[number_in_proc5 - kFirst], &value)) {
    return std::nullopt;
  }
  return value;
}

// Seconds since 1970 at which the machine started; the process's start is counted from it.
std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  double value = 0;
  while (file >> word) {
    if (word == "btime" && file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectProcessMetrics() {
  std::vector<prometheus::MetricFamily> families;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    families.push_back(One("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
                           MetricType::Counter, seconds(usage.ru_utime) + seconds(usage.ru_stime)));
  }
  const std::vector<std::string> stat = ReadStat();
  if (const auto pages = Field(stat, /*rss*/ 24)) {
    families.push_back(One("process_resident_memory_bytes", "Resident memory size in bytes.", MetricType::Gauge,
                           *pages * static_cast<double>(sysconf(_SC_PAGESIZE))));
  }
  if (const auto threads = Field(stat, /*num_threads*/ 20)) {
    families.push_back(One("process_threads", "Number of threads.", MetricType::Gauge, *threads));
  }
  const auto ticks = Field(stat, /*starttime*/ 22);
  const auto boot = BootTime();
  if (ticks && boot) {
    families.push_back(One("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
                           MetricType::Gauge, *boot + *ticks / static_cast<double>(sysconf(_SC_CLK_TCK))));
  }
  std::error_code error;
  int64_t files = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++files;
  }
  if (!error) {
    families.push_back(
        One("process_open_fds", "Number of open file descriptors.", MetricType::Gauge, static_cast<double>(files)));
  }
  return families;
}

}  // namespace triad
