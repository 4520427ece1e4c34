// What `triad attend` does with an answer: files, and a summary.
#pragma once

#include <ostream>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/tools/attend_flags.h"
#include "triad/attend.h"

namespace triad::tools {

// One tensor of the answer and where it goes.
struct AnswerPart {
  std::string name;  // "output", "lse" or "weights"
  client::TensorView tensor;
  std::string path;  // empty: no file
};

// The parts of `response`, from which they borrow, and the files that `flags` name for them.
std::vector<AnswerPart> AnswerParts(const client::AttendResponse& response, const AttendFlags& flags);

// INVALID_ARGUMENT when a file to write is neither .npy nor .safetensors, or when two parts would go to one .npy file.
absl::Status CheckOutputPaths(const AttendFlags& flags);

// Writes the parts that have a path; those of one .safetensors file under their names. Errors name the path.
absl::Status WriteAnswer(const std::vector<AnswerPart>& parts);

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
void PrintAnswer(const std::vector<AnswerPart>& parts, const client::Timings& timings, absl::Duration round_trip,
                 std::ostream& out);
void PrintAnswerJson(const std::vector<AnswerPart>& parts, const client::Timings& timings, absl::Duration round_trip,
                     std::ostream& out);

}  // namespace triad::tools
