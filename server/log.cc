#include "server/log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace triad {
namespace {

absl::string_view Letter(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "I";
    case LogLevel::kWarning:
      return "W";
    case LogLevel::kError:
      return "E";
  }
  return "?";
}

absl::string_view Word(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

// `text` inside JSON's quotes. Bytes past ASCII pass through: our own texts are UTF-8.
std::string Escape(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// A text line's value: bare when that is unambiguous, else quoted.
std::string TextValue(absl::string_view value) {
  const std::string escaped = Escape(value);
  if (escaped == value && !value.empty() && value.find(' ') == absl::string_view::npos) return escaped;
  return absl::StrCat("\"", escaped, "\"");
}

}  // namespace

absl::string_view Name(LogFormat format) { return format == LogFormat::kJson ? "json" : "text"; }

std::string FormatLogLine(LogFormat format, LogLevel level, absl::string_view time, absl::string_view message,
                          const LogFields& fields) {
  std::string line;
  if (format == LogFormat::kText) {
    std::string text(message);
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    line = absl::StrCat(time, " ", Letter(level), " ", text);
    for (const auto& [name, value] : fields) absl::StrAppend(&line, " ", name, "=", TextValue(value));
    return line + "\n";
  }
  line = absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", Word(level), "\",\"message\":\"", Escape(message), "\"");
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&line, ",\"", Escape(name), "\":\"", Escape(value), "\"");
  }
  return line + "}\n";
}

void Log::Write(LogLevel level, absl::string_view message, const LogFields& fields) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line = FormatLogLine(format_, level, time, message, fields);
  MutexLock lock(mu_);
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

}  // namespace triad
