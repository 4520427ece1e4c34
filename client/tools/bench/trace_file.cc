#include "client/tools/bench/trace_file.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace triad::tools {
namespace {

constexpr int kTraceVersion = 1;

absl::Status Bad(const std::string& path, int64_t line, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat(path, ", line ", line, ": ", rule));
}

// A line of JSON that is an object; nullopt otherwise.
std::optional<Json> ParseObject(const std::string& line) {
  Json object = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  return object;
}

// Reads the member `name`, where there is one, into `value`; false when it is of another kind.
template <class T>
bool Read(const Json& object, const char* name, T& value) {
  const auto found = object.find(name);
  if (found == object.end()) return true;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, double>) {
    if (!found->is_number()) return false;
  } else if (!found->is_number_integer()) {
    return false;
  }
  value = found->template get<T>();
  return true;
}

bool ReadWorkload(const Json& object, Workload& w) {
  static const std::map<std::string, Workload::Kind> kinds = {{"attend", Workload::Kind::kAttend},
                                                              {"forward", Workload::Kind::kForward}};
  std::string kind = "attend";
  std::string dtype = std::string(Name(w.dtype));
  if (!Read(object, "kind", kind) || kinds.count(kind) == 0 || !Read(object, "dtype", dtype)) return false;
  w.kind = kinds.at(kind);
  bool known = false;
  for (const DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
    if (Name(type) != absl::string_view(dtype)) continue;
    w.dtype = type;
    known = true;
  }
  int64_t version = 0;
  if (!Read(object, "layer_version", version)) return false;
  if (version > 0) w.layer_version = version;
  return known && Read(object, "batch", w.batch) && Read(object, "keep", w.keep) && Read(object, "heads", w.heads) &&
         Read(object, "kv_heads", w.kv_heads) && Read(object, "qk_head_dim", w.qk_head_dim) &&
         Read(object, "v_head_dim", w.v_head_dim) && Read(object, "causal", w.causal) &&
         Read(object, "layer", w.layer) && CheckWorkload(w).ok();
}

// A line of the list. `entry` comes in with its defaults.
bool ReadEntry(const Json& object, TraceEntry& entry) {
  PlannedRequest& request = entry.request;
  int64_t due_ns = entry.due.count();
  if (!object.contains("tokens") || !Read(object, "tokens", request.tokens)) return false;
  request.kv_len = request.tokens;
  if (!Read(object, "kv_len", request.kv_len) || !Read(object, "seed", request.seed) ||
      !Read(object, "due_ns", due_ns)) {
    return false;
  }
  entry.due = Duration(due_ns);
  return request.tokens >= 1 && request.kv_len >= 1 && due_ns >= 0;
}

}  // namespace

Json WorkloadJson(const Workload& w) {
  Json json;
  const bool is_attend = w.kind == Workload::Kind::kAttend;
  json["kind"] = is_attend ? "attend" : "forward";
  json["dtype"] = std::string(Name(w.dtype));
  json["batch"] = w.batch;
  json["keep"] = w.keep;
  if (is_attend) {
    json["heads"] = w.heads;
    json["kv_heads"] = w.kv_heads;
    json["qk_head_dim"] = w.qk_head_dim;
    json["v_head_dim"] = w.v_head_dim;
    json["causal"] = w.causal;
  } else {
    json["layer"] = w.layer;
    if (w.layer_version) json["layer_version"] = *w.layer_version;
  }
  return json;
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::ErrnoToStatus(errno, path);
  Trace trace;
  std::string text;
  int64_t line = 1;
  int version = 0;
  std::getline(file, text);
  if (file.bad()) return absl::ErrnoToStatus(errno, path);
  const auto header = ParseObject(text);
  if (!header || !Read(*header, "triad_trace", version) || version != kTraceVersion || !header->contains("workload") ||
      !ReadWorkload((*header)["workload"], trace.workload)) {
    return Bad(path, line, absl::StrCat("must be {\"triad_trace\":", kTraceVersion, ",\"workload\":{...}}"));
  }
  Duration due = Duration::zero();
  while (std::getline(file, text)) {
    ++line;
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    const auto object = ParseObject(text);
    TraceEntry entry{.due = due, .request = {.seed = static_cast<uint64_t>(line)}};
    if (!object || !ReadEntry(*object, entry)) {
      return Bad(path, line,
                 "must be {\"due_ns\":...,\"tokens\":...,\"kv_len\":...,\"seed\":...}, tokens and kv_len >= "
                 "1, due_ns >= 0");
    }
    due = entry.due;
    trace.has_times |= object->contains("due_ns");
    trace.entries.push_back(entry);
  }
  if (file.bad()) return absl::ErrnoToStatus(errno, path);
  if (trace.entries.empty()) return Bad(path, line, "no requests follow");
  std::stable_sort(trace.entries.begin(), trace.entries.end(),
                   [](const TraceEntry& a, const TraceEntry& b) { return a.due < b.due; });
  return trace;
}

absl::StatusOr<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path, const Workload& workload) {
  std::unique_ptr<TraceWriter> writer(new TraceWriter(path));
  MutexLock lock(writer->mu_);
  writer->file_.open(path, std::ios::trunc);
  if (!writer->file_) return absl::ErrnoToStatus(errno, path);
  writer->file_ << Json{{"triad_trace", kTraceVersion}, {"workload", WorkloadJson(workload)}}.dump() << "\n";
  return writer;
}

void TraceWriter::Add(const TraceEntry& entry) {
  const std::string line = absl::StrCat("{\"due_ns\":", entry.due.count(), ",\"tokens\":", entry.request.tokens,
                                        ",\"kv_len\":", entry.request.kv_len, ",\"seed\":", entry.request.seed, "}\n");
  MutexLock lock(mu_);
  file_ << line;
}

absl::Status TraceWriter::Close() {
  MutexLock lock(mu_);
  file_.close();
  return file_ ? absl::OkStatus() : absl::ErrnoToStatus(errno, absl::StrCat(path_, ": not all of it could be written"));
}

}  // namespace triad::tools
