#include "client/tools/bench/service_level.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace triad::tools {

absl::StatusOr<ServiceLevel> ParseServiceLevel(const std::string& text) {
  const size_t equals = text.find('=');
  double percent = 0;
  absl::Duration limit;
  if (equals == std::string::npos || text[0] != 'p' || !absl::SimpleAtod(text.substr(1, equals - 1), &percent) ||
      !(percent > 0 && percent < 100) || !absl::ParseDuration(text.substr(equals + 1), &limit) ||
      limit <= absl::ZeroDuration() || limit == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--slo must be a percentile and a duration, such as p99=20ms; was ", text));
  }
  return ServiceLevel{.share = percent / 100, .limit = absl::ToChronoNanoseconds(limit)};
}

std::string ToText(const ServiceLevel& level) {
  return absl::StrCat("p", level.share * 100, "=", absl::FormatDuration(absl::FromChrono(level.limit)));
}

void RateSearch::Report(bool met) {
  (met ? met_ : missed_) = *next_;
  ++tries_;
  if (met_ && missed_) {
    const bool is_over = *missed_ <= *met_ * (1 + precision_);
    next_ = is_over ? std::nullopt : std::optional(std::sqrt(*met_ * *missed_));
  } else {
    next_ = *next_ * (met ? 2 : 0.5);
  }
  if (tries_ == kMaxTries) next_ = std::nullopt;
}

}  // namespace triad::tools
