// What the operating system says about this process, under the names that Prometheus' own clients use.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace triad {

// process_cpu_seconds_total, process_resident_memory_bytes, process_start_time_seconds, process_open_fds and
// process_threads; a value that cannot be read is left out. Reads /proc.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

}  // namespace triad
