// Recorded requests, to be sent again: lines of JSON.
//
//   {"triad_trace":1,"workload":{"kind":"attend","dtype":"FLOAT32","heads":8,...}}
//   {"due_ns":0,"tokens":16,"kv_len":16,"seed":7136271}
//   ...
//
// Of a line only "tokens" must be there: "kv_len" is then the same, "seed" the line's number, "due_ns" that of the line
// before. So a log of lengths becomes a trace with a few strokes; where no line says "due_ns", only something else can
// say when to send. Empty lines below the first are left out, but counted. Lines may come in any order of time: threads
// write them side by side.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tools/bench/request_stream.h"
#include "client/tools/bench/workload.h"
#include "client/tools/json_output.h"
#include "core/base/mutex.h"

namespace triad::tools {

struct Trace {
  Workload workload;                // a Forward's widths are not in the file: they are the layer's
  std::vector<TraceEntry> entries;  // not empty; by `due`
  bool has_times = false;           // a line says "due_ns"; else every `due` is 0
};

// The members of a workload that matter to its kind; reports have them too.
Json WorkloadJson(const Workload& workload);

// INVALID_ARGUMENT names file, line and rule; else as the system says, naming the file.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

// Writes a trace while requests are sent. Thread-safe.
class TraceWriter {
 public:
  // Replaces `path`. Errors as the system says, naming it.
  static absl::StatusOr<std::unique_ptr<TraceWriter>> Create(const std::string& path, const Workload& workload);

  void Add(const TraceEntry& entry) ABSL_LOCKS_EXCLUDED(mu_);
  // Call once, when all is added. Errors as the system says: not all of it could be written.
  absl::Status Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit TraceWriter(const std::string& path) : path_(path) {}

  const std::string path_;
  Mutex mu_;
  std::ofstream file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace triad::tools
