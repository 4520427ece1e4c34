// Are the answers right? Asked after a run, of a sample.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "client/tools/bench/answer_sample.h"
#include "client/tools/bench/request_builder.h"
#include "triad/client.h"

namespace triad::tools {

struct CheckReport {
  int64_t right = 0;
  int64_t wrong = 0;
  int64_t unchecked = 0;    // nothing to compare with, and `why_unchecked` says why for the last one
  int64_t interrupted = 0;  // of those: left because of a stop
  std::string first_wrong;  // what, and by how much
  std::string why_unchecked;
  double largest_excess = 0;  // Attend: the largest error, as a share of the bound that README.md, "Numbers", states
};

// Attend: the last rows of one sequence (at most 64, and what the server's max_reference_work allows) are asked of
// kernel REFERENCE. Forward: the same request is sent again, alone, and must bring the same bytes. Each question goes
// to the server that gave the answer; `clients` are by target. Blocks; one call after another. A `stop` cancels the
// call that is under way and leaves the rest.
CheckReport CheckAnswers(const std::vector<SampledAnswer>& answers, const RequestBuilder& builder,
                         const std::vector<client::Client>& clients, std::stop_token stop = {});

}  // namespace triad::tools
