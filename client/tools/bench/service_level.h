// An objective for latency, and the search for the highest rate that meets it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/clock.h"

namespace triad::tools {

// "p99=20ms": of all requests, at least `share` are answered, without an error, within `limit` of when they were due.
struct ServiceLevel {
  double share = 0.99;
  Duration limit = {};

  bool IsMet(int64_t within, int64_t all) const {
    constexpr double kRounding = 1 - 1e-12;  // `share` is a rounded decimal: 999 of 1000 are 99.9 %
    return all > 0 && static_cast<double>(within) >= share * kRounding * static_cast<double>(all);
  }
  // The fewest requests of which one may miss: of fewer, none may, whatever the share.
  int64_t LeastRequests() const { return static_cast<int64_t>(std::ceil(1 / (1 - share) - 1e-6)); }
};

// Reads "pN=DURATION", 0 < N < 100, N may have decimals. INVALID_ARGUMENT names the rule and the text.
absl::StatusOr<ServiceLevel> ParseServiceLevel(const std::string& text);
std::string ToText(const ServiceLevel& level);

// Which rate to try next: doubling until one misses, or halving until one does not, then by halves of the (geometric)
// gap until it is at most `precision`. Pure: whoever asks makes the runs.
class RateSearch {
 public:
  // `start` and `precision` > 0.
  RateSearch(double start, double precision) : next_(start), precision_(precision) {}

  // nullopt: the search is over.
  std::optional<double> next() const { return next_; }
  // What came of trying next(), which is not nullopt.
  void Report(bool met);
  // The highest rate that met the objective; nullopt: none has, yet.
  std::optional<double> best() const { return met_; }

 private:
  static constexpr int kMaxTries = 40;  // of ever smaller or larger rates, where no server is

  std::optional<double> next_;
  const double precision_;
  std::optional<double> met_;     // the highest
  std::optional<double> missed_;  // the lowest
  int tries_ = 0;
};

}  // namespace triad::tools
