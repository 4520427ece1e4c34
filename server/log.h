// The server's own log: a line per event on one stream, as text for people or as JSON for machines. Rare by design:
// nothing is logged per request.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace triad {

enum class LogFormat { kText, kJson };

// "text", "json".
absl::string_view Name(LogFormat format);

enum class LogLevel { kInfo, kWarning, kError };

// Values of one event, in the order they are printed.
using LogFields = std::vector<std::pair<std::string, std::string>>;

// The line for one event, newline included. `time` is RFC 3339.
//   text: 2026-01-31T12:00:00.000Z I listening on 127.0.0.1:8470 threads=2
//   JSON: {"time":"...","level":"info","message":"listening on 127.0.0.1:8470","threads":"2"}
// Line breaks and control characters of a value are escaped in both, so that an event is always one line.
std::string FormatLogLine(LogFormat format, LogLevel level, absl::string_view time, absl::string_view message,
                          const LogFields& fields);

// Thread-safe. Blocks for as long as the stream does.
class Log {
 public:
  // Borrows `stream`, usually stderr.
  Log(LogFormat format, std::FILE* stream) : format_(format), stream_(stream) {}

  void Info(absl::string_view message, const LogFields& fields = {}) { Write(LogLevel::kInfo, message, fields); }
  void Warning(absl::string_view message, const LogFields& fields = {}) { Write(LogLevel::kWarning, message, fields); }
  void Error(absl::string_view message, const LogFields& fields = {}) { Write(LogLevel::kError, message, fields); }

 private:
  void Write(LogLevel level, absl::string_view message, const LogFields& fields);

  const LogFormat format_;
  Mutex mu_;  // keeps lines whole
  std::FILE* const stream_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace triad
