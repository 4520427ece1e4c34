#include "client/tools/answer_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/tools/json_output.h"
#include "client/tools/tensor_bridge.h"
#include "core/tensor/npy_file.h"
#include "core/tensor/safetensors_file.h"

namespace triad::tools {
namespace {

bool IsSafetensors(const std::string& path) { return absl::EndsWith(path, ".safetensors"); }

// JSON has no NaN.
Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string Microseconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Microseconds(1)));
}

// `Response` is that of attend or of forward.
template <class Response>
std::vector<AnswerPart> ReadParts(const Response& response, const AnswerFlags& flags) {
  // What has no file of its own goes to the output's, where that can hold several tensors.
  const auto place = [&flags](const std::string& path) {
    return path.empty() && IsSafetensors(flags.output) ? flags.output : path;
  };
  std::vector<AnswerPart> parts = {{"output", response.output.view(), flags.output}};
  if (response.lse) parts.push_back({"lse", response.lse->view(), place(flags.lse)});
  if (response.weights) parts.push_back({"weights", response.weights->view(), place(flags.weights)});
  return parts;
}

}  // namespace

Answer ReadAnswer(const client::AttendResponse& response, const AnswerFlags& flags) {
  return {.parts = ReadParts(response, flags), .timings = response.timings, .layer_version = std::nullopt};
}

Answer ReadAnswer(const client::ForwardResponse& response, const AnswerFlags& flags) {
  return {.parts = ReadParts(response, flags), .timings = response.timings, .layer_version = response.version};
}

absl::Status CheckOutputPaths(const AnswerFlags& flags, const std::vector<NamedFile>& inputs) {
  std::vector<NamedFile> outputs;
  std::set<std::string> collections;
  for (const NamedFile& file :
       {NamedFile{"--output", flags.output}, {"--lse", flags.lse}, {"--weights", flags.weights}}) {
    if (file.path.empty()) continue;
    if (!IsSafetensors(file.path) && !absl::EndsWith(file.path, ".npy")) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.flag, " takes a .npy or a .safetensors file; was ", file.path));
    }
    if (!IsSafetensors(file.path) || collections.insert(file.path).second) outputs.push_back(file);
  }
  return CheckOutputs(outputs, inputs);
}

absl::Status WriteAnswer(const Answer& answer) {
  std::map<std::string, std::map<std::string, TensorView>> collections;  // by path, then name
  for (const AnswerPart& part : answer.parts) {
    if (part.path.empty()) continue;
    const TensorView tensor = FromClient(part.tensor);
    if (IsSafetensors(part.path)) {
      collections[part.path][part.name] = tensor;
    } else if (absl::Status status = WriteNpy(part.path, tensor); !status.ok()) {
      return status;
    }
  }
  for (const auto& [path, tensors] : collections) {
    if (absl::Status status = WriteSafetensors(path, tensors); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Statistics Summarize(const client::TensorView& tensor) {
  const TensorView view = FromClient(tensor);
  const int64_t element_bytes = ByteSize(view.dtype);
  const int64_t count = static_cast<int64_t>(tensor.data.size()) / element_bytes;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Statistics statistics = {.min = kInfinity, .max = -kInfinity};
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = LoadElement(view.data + i * element_bytes, view.dtype);
    if (!std::isfinite(value)) {
      ++statistics.non_finite;
      continue;
    }
    ++statistics.finite;
    sum += value;
    statistics.min = std::min(statistics.min, value);
    statistics.max = std::max(statistics.max, value);
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (statistics.finite == 0) statistics.min = statistics.max = kNan;
  statistics.mean = statistics.finite == 0 ? kNan : sum / static_cast<double>(statistics.finite);
  return statistics;
}

void PrintAnswer(const Answer& answer, absl::Duration round_trip, std::ostream& out) {
  for (const AnswerPart& part : answer.parts) {
    const Statistics s = Summarize(part.tensor);
    out << absl::StrFormat("%-8s %s [%s]", part.name, client::Name(part.tensor.dtype),
                           absl::StrJoin(part.tensor.shape, ", "));
    if (s.finite > 0) out << absl::StrFormat("  min %.6g  mean %.6g  max %.6g", s.min, s.mean, s.max);
    if (s.non_finite > 0) out << "  not finite: " << s.non_finite;
    if (!part.path.empty()) out << "  -> " << part.path;
    out << "\n";
  }
  const client::Timings& timings = answer.timings;
  if (answer.layer_version) {
    out << "layer    version " << *answer.layer_version << "  projections shared by " << timings.batch_requests
        << " requests, " << timings.batch_tokens << " tokens\n";
  }
  out << "server   queue " << Microseconds(timings.queue) << "  compute " << Microseconds(timings.compute) << "  total "
      << Microseconds(timings.total) << "\n"
      << "call     " << Microseconds(round_trip) << "\n";
}

void PrintAnswerJson(const Answer& answer, absl::Duration round_trip, std::ostream& out) {
  Json document;
  for (const AnswerPart& part : answer.parts) {
    const Statistics s = Summarize(part.tensor);
    document[part.name] = {{"dtype", std::string(client::Name(part.tensor.dtype))},
                           {"shape", part.tensor.shape},
                           {"min", NumberOrNull(s.min)},
                           {"mean", NumberOrNull(s.mean)},
                           {"max", NumberOrNull(s.max)},
                           {"non_finite", s.non_finite},
                           {"file", part.path.empty() ? Json(nullptr) : Json(part.path)}};
  }
  const client::Timings& timings = answer.timings;
  document["timings"] = {{"queue_ns", absl::ToInt64Nanoseconds(timings.queue)},
                         {"compute_ns", absl::ToInt64Nanoseconds(timings.compute)},
                         {"total_ns", absl::ToInt64Nanoseconds(timings.total)},
                         {"round_trip_ns", absl::ToInt64Nanoseconds(round_trip)}};
  if (answer.layer_version) {
    document["timings"]["batch_requests"] = timings.batch_requests;
    document["timings"]["batch_tokens"] = timings.batch_tokens;
    document["layer_version"] = *answer.layer_version;
  }
  PrintJson(document, out);
}

}  // namespace triad::tools
