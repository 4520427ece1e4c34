// What a command does with an answer of tensors: files, and a summary.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/tools/answer_flags.h"
#include "client/tools/output_files.h"
#include "triad/attend.h"
#include "triad/forward.h"

namespace triad::tools {

// One tensor of the answer and where it goes.
struct AnswerPart {
  std::string name;  // "output", "lse" or "weights"
  client::TensorView tensor;
  std::string path;  // empty: no file
};

struct Answer {
  std::vector<AnswerPart> parts;
  client::Timings timings;
  std::optional<int64_t> layer_version;  // of a hosted layer's answer
};

// What `response` brings, from which it borrows, and the files that `flags` name for it.
Answer ReadAnswer(const client::AttendResponse& response, const AnswerFlags& flags);
Answer ReadAnswer(const client::ForwardResponse& response, const AnswerFlags& flags);

// INVALID_ARGUMENT when a file to write is neither .npy nor .safetensors; else as CheckOutputs (output_files.h), except
// that parts may share a .safetensors file whose path they spell alike. `inputs` are the command's other files.
absl::Status CheckOutputPaths(const AnswerFlags& flags, const std::vector<NamedFile>& inputs);

// Writes the parts that have a path; those of one .safetensors file under their names. Errors name the path.
absl::Status WriteAnswer(const Answer& answer);

// What a tensor holds, in short. Minimum, mean and maximum are of the finite values; NaN when there are none.
struct Statistics {
  int64_t finite = 0;
  int64_t non_finite = 0;
  double min = 0;
  double mean = 0;
  double max = 0;
};
Statistics Summarize(const client::TensorView& tensor);

// Prints shapes, statistics and times. `round_trip`: as the caller measured it.
void PrintAnswer(const Answer& answer, absl::Duration round_trip, std::ostream& out);
void PrintAnswerJson(const Answer& answer, absl::Duration round_trip, std::ostream& out);

}  // namespace triad::tools
