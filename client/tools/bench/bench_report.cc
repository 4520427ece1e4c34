#include "client/tools/bench/bench_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace triad::tools {
namespace {

int64_t Failures(const RunResult& result) { return result.answered() - result.succeeded(); }

// The first of the codes that are errors, with `what` before its message; OK where there are none.
absl::Status FirstError(const RunResult& result, const std::string& what) {
  for (size_t code = 1; code < kStatusCodes; ++code) {
    const CodeCount& count = result.codes[code];
    if (count.count == 0) continue;
    return absl::Status(static_cast<absl::StatusCode>(code), absl::StrCat(what, "; the first: ", count.first_message));
  }
  return absl::OkStatus();
}

// -- For people ------------------------------------------------------------------------------------------------------

void PrintHistogram(const std::string& name, const LatencyHistogram& histogram, std::ostream& out) {
  out << absl::StrFormat("  %-12s", name);
  if (histogram.empty()) {
    out << " none\n";
    return;
  }
  for (const NamedShare& share : kReportedShares) {
    out << absl::StrFormat(" %8s", ShortDuration(histogram.Percentile(share.share)));
  }
  out << absl::StrFormat(" %8s %8s\n", ShortDuration(histogram.max()), ShortDuration(histogram.mean()));
}

void PrintCheck(const CheckReport& check, std::ostream& out) {
  out << "answers checked: " << check.right << " right, " << check.wrong << " wrong, " << check.unchecked
      << " could not be checked";
  if (check.largest_excess > 0) out << absl::StrFormat("; largest error %.2g of the bound", check.largest_excess);
  out << "\n";
  if (check.wrong > 0) out << "  " << check.first_wrong << "\n";
  if (check.unchecked > 0) out << "  " << check.why_unchecked << "\n";
}

void PrintCodes(const RunResult& result, std::ostream& out) {
  for (size_t code = 0; code < result.codes.size(); ++code) {
    const CodeCount& count = result.codes[code];
    if (count.count == 0) continue;
    out << absl::StrFormat("  %-20s %10d", CodeName(code), count.count);
    if (!count.first_message.empty()) out << "  " << count.first_message.substr(0, count.first_message.find('\n'));
    out << "\n";
  }
}

void PrintLevel(const LevelReport& level, const std::optional<ServiceLevel>& slo, std::ostream& out) {
  const RunResult& r = level.result;
  out << absl::StrFormat("%s: %d results in %s, %.1f/s%s\n\n", level.label, r.succeeded(), ShortDuration(r.elapsed),
                         r.throughput(), EndMark(level.end, ", "));
  out << absl::StrFormat("%-14s", "latency");
  for (const NamedShare& share : kReportedShares) out << absl::StrFormat(" %8s", share.name);
  out << absl::StrFormat(" %8s %8s   (percentiles within %.1f %%)\n", "max", "mean",
                         LatencyHistogram::kRelativeError * 100);
  PrintHistogram("from due", r.latency, out);
  PrintHistogram("from sent", r.uncorrected, out);
  PrintHistogram("  queue", r.queue, out);
  PrintHistogram("  compute", r.compute, out);
  PrintHistogram("  server rest", r.rest, out);
  PrintHistogram("  wire", r.wire, out);
  if (level.is_open) PrintHistogram("send delay", r.send_delay, out);
  out << "\nanswers\n";
  PrintCodes(r, out);
  if (level.is_open) {
    out << absl::StrFormat("of %d due: %d sent, %d of them late, %d dropped\n", r.due(), r.sent, r.late, r.dropped);
  }
  if (slo) {
    out << absl::StrFormat(
        "%s %s: %.2f %% within; goodput %.1f/s\n", ToText(*slo),
        slo->IsMet(r.within_slo, r.due()) ? "is met" : "is missed",
        100.0 * static_cast<double>(r.within_slo) / static_cast<double>(std::max<int64_t>(r.due(), 1)), r.goodput());
  }
  PrintCheck(level.check, out);
}

void PrintTable(const BenchReport& report, std::ostream& out) {
  size_t width = 0;
  for (const LevelReport& level : report.levels) width = std::max(width, level.label.size());
  const int columns = static_cast<int>(width);
  out << absl::StrFormat("%-*s %10s %8s %8s %8s %8s %8s %8s %8s %8s", columns, "", "results/s", "p50", "p90", "p99",
                         "p99.9", "p99.99", "max", "queue", "compute");
  out << absl::StrFormat(" %8s %6s %7s", "errors", "late", "dropped");
  if (report.slo) out << absl::StrFormat("  %10s  %s", "goodput/s", ToText(*report.slo));
  out << "\n";
  for (const LevelReport& level : report.levels) {
    const RunResult& r = level.result;
    out << absl::StrFormat("%-*s %10.1f", columns, level.label, r.throughput());
    for (const double share : {0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
      out << absl::StrFormat(" %8s", ShortPercentile(r.latency, share));
    }
    out << absl::StrFormat(" %8s %8s", ShortPercentile(r.queue, 0.5), ShortPercentile(r.compute, 0.5));
    out << absl::StrFormat(" %8d %6d %7d", Failures(r), r.late, r.dropped);
    if (report.slo) {
      out << absl::StrFormat("  %10.1f  %s", r.goodput(), report.slo->IsMet(r.within_slo, r.due()) ? "met" : "missed");
    }
    out << EndMark(level.end, "  ") << "\n";
  }
}

// What all levels' answers and checks come to.
std::pair<RunResult, CheckReport> Totals(const BenchReport& report) {
  std::pair<RunResult, CheckReport> total;
  for (const LevelReport& level : report.levels) {
    for (size_t code = 0; code < kStatusCodes; ++code) {
      CodeCount& sum = total.first.codes[code];
      if (sum.count == 0) sum.first_message = level.result.codes[code].first_message;
      sum.count += level.result.codes[code].count;
    }
    CheckReport& check = total.second;
    if (check.wrong == 0) check.first_wrong = level.check.first_wrong;
    if (level.check.unchecked > 0) check.why_unchecked = level.check.why_unchecked;
    check.right += level.check.right;
    check.wrong += level.check.wrong;
    check.unchecked += level.check.unchecked;
    check.interrupted += level.check.interrupted;
    check.largest_excess = std::max(check.largest_excess, level.check.largest_excess);
  }
  return total;
}

// -- For machines ----------------------------------------------------------------------------------------------------

// All null where nothing was recorded.
Json HistogramJson(const LatencyHistogram& histogram) {
  const auto ns = [&](Duration duration) { return histogram.empty() ? Json() : Json(duration.count()); };
  Json json;
  for (const NamedShare& share : kReportedShares) {
    json[absl::StrCat(share.name, "_ns")] = ns(histogram.Percentile(share.share));
  }
  json["max_ns"] = ns(histogram.max());
  json["mean_ns"] = ns(histogram.mean());
  json["min_ns"] = ns(histogram.min());
  return json;
}

Json SeriesJson(const TimeSeries& series) {
  Json json;
  json["interval_ns"] = series.interval().count();
  for (const char* name : {"sent", "succeeded", "failed", "slowest_ns"}) json[name] = Json::array();
  for (const TimeSeries::Interval& interval : series.intervals()) {
    json["sent"].push_back(interval.sent);
    json["succeeded"].push_back(interval.succeeded);
    json["failed"].push_back(interval.failed);
    json["slowest_ns"].push_back(interval.slowest.count());
  }
  return json;
}

Json LevelJson(const LevelReport& level, const std::optional<ServiceLevel>& slo) {
  const RunResult& r = level.result;
  Json json = {{"level", level.label},
               {"interrupted", level.end == RunEnd::kInterrupted},
               {"refused", level.end == RunEnd::kRefused},
               {"elapsed_ns", r.elapsed.count()},
               {"results", r.succeeded()},
               {"results_per_second", r.throughput()},
               {"due", r.due()},
               {"sent", r.sent},
               {"late", r.late},
               {"dropped", r.dropped},
               {"generator", level.generator.ok() ? "kept up" : std::string(level.generator.message())}};
  if (slo) {
    json["slo"] = {{"objective", ToText(*slo)},
                   {"met", slo->IsMet(r.within_slo, r.due())},
                   {"within", r.within_slo},
                   {"goodput_per_second", r.goodput()}};
  }
  json["latency"] = HistogramJson(r.latency);
  json["latency_from_sent"] = HistogramJson(r.uncorrected);
  json["server_queue"] = HistogramJson(r.queue);
  json["server_compute"] = HistogramJson(r.compute);
  json["server_rest"] = HistogramJson(r.rest);
  json["wire"] = HistogramJson(r.wire);
  json["send_delay"] = HistogramJson(r.send_delay);
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (r.codes[code].count == 0) continue;
    json["codes"][CodeName(code)] = {{"count", r.codes[code].count}, {"first_message", r.codes[code].first_message}};
  }
  json["check"] = {{"right", level.check.right},
                   {"wrong", level.check.wrong},
                   {"unchecked", level.check.unchecked},
                   {"interrupted", level.check.interrupted},
                   {"largest_excess", level.check.largest_excess},
                   {"first_wrong", level.check.first_wrong},
                   {"why_unchecked", level.check.why_unchecked}};
  json["series"] = SeriesJson(r.series);
  return json;
}

}  // namespace

std::string EndMark(RunEnd end, const std::string& separator) {
  switch (end) {
    case RunEnd::kComplete:
      return "";
    case RunEnd::kInterrupted:
      return separator + "interrupted";
    case RunEnd::kRefused:
      return separator + "refused for good";
  }
  return "";
}

std::string CodeName(size_t code) { return std::string(absl::StatusCodeToString(static_cast<absl::StatusCode>(code))); }

absl::Status Verdict(const BenchReport& report) {
  const auto [answers, check] = Totals(report);
  if (check.wrong > 0) {
    return absl::DataLossError(absl::StrCat(check.wrong, " sampled answers are wrong; the first: ", check.first_wrong));
  }
  for (const LevelReport& level : report.levels) {
    if (level.end == RunEnd::kInterrupted || level.check.interrupted > 0) {
      const std::string left = check.interrupted > 0
                                   ? absl::StrCat(", and ", check.interrupted, " sampled answers were left unchecked")
                                   : "";
      return absl::CancelledError(absl::StrCat("interrupted; the report is of what had been answered", left));
    }
    if (level.end == RunEnd::kRefused) {
      return FirstError(level.result, "ended early: every request was refused, and would be another time");
    }
  }
  if (answers.succeeded() == 0) {
    const absl::Status error = FirstError(answers, "no request was answered with a result");
    return error.ok() ? absl::OutOfRangeError("no request was sent") : error;
  }
  if (report.search) {
    return report.search->highest_rate ? absl::OkStatus()
                                       : absl::OutOfRangeError("no rate that was tried meets the --slo");
  }
  for (const LevelReport& level : report.levels) {
    if (!level.generator.ok()) {
      return absl::Status(level.generator.code(), absl::StrCat(level.label, ": ", level.generator.message()));
    }
  }
  return absl::OkStatus();
}

void PrintReport(const BenchReport& report, std::ostream& out) {
  PrintTable(report.setup, out);
  out << "\n";
  if (report.levels.size() == 1 && !report.search) return PrintLevel(report.levels[0], report.slo, out);
  PrintTable(report, out);
  const auto [answers, check] = Totals(report);
  out << "\nanswers\n";
  PrintCodes(answers, out);
  PrintCheck(check, out);
  if (!report.search) return;
  if (report.search->highest_rate) {
    out << absl::StrFormat("highest rate that meets %s: %.1f/s\n", ToText(*report.slo), *report.search->highest_rate);
    if (report.search->requests < report.slo->LeastRequests()) {
      out << "its run had only " << report.search->requests << " requests, and that objective is about "
          << report.slo->LeastRequests() << " and more: give a longer --duration\n";
    }
  }
  if (report.search->generator_was_the_limit) {
    out << "above that, this machine could not keep up with sending: the server may bear more\n";
  }
}

Json ReportJson(const BenchReport& report) {
  Json json = {{"setup", report.setup}, {"levels", Json::array()}};
  json["percentile_relative_error"] = LatencyHistogram::kRelativeError;
  for (const LevelReport& level : report.levels) json["levels"].push_back(LevelJson(level, report.slo));
  if (report.search) {
    json["search"]["highest_rate"] = report.search->highest_rate ? Json(*report.search->highest_rate) : Json();
    json["search"]["requests"] = report.search->requests;
    json["search"]["generator_was_the_limit"] = report.search->generator_was_the_limit;
  }
  return json;
}

std::string ReportCsv(const BenchReport& report) {
  const auto histograms = [](const RunResult& r) {
    return std::vector<std::pair<std::string, const LatencyHistogram*>>{
        {"latency", &r.latency},      {"latency_from_sent", &r.uncorrected},
        {"queue", &r.queue},          {"compute", &r.compute},
        {"server_rest", &r.rest},     {"wire", &r.wire},
        {"send_delay", &r.send_delay}};
  };
  std::string csv =
      "level,elapsed_ns,due,sent,late,dropped,results,errors,results_per_second,within_slo,goodput_per_second";
  for (const auto& [name, unused] : histograms(RunResult())) {
    for (const NamedShare& share : kReportedShares) absl::StrAppend(&csv, ",", name, "_", share.name, "_ns");
    absl::StrAppend(&csv, ",", name, "_max_ns,", name, "_mean_ns");
  }
  absl::StrAppend(&csv, ",checked_right,checked_wrong,unchecked,interrupted,refused\n");
  for (const LevelReport& level : report.levels) {
    const RunResult& r = level.result;
    absl::StrAppend(&csv, level.label, ",", r.elapsed.count(), ",", r.due(), ",", r.sent, ",");
    absl::StrAppend(&csv, r.late, ",", r.dropped, ",", r.succeeded(), ",", Failures(r), ",", r.throughput(), ",");
    absl::StrAppend(&csv, report.slo ? absl::StrCat(r.within_slo, ",", r.goodput()) : ",");
    for (const auto& [name, histogram] : histograms(r)) {
      const auto append = [&csv, empty = histogram->empty()](Duration duration) {
        absl::StrAppend(&csv, ",", empty ? "" : absl::StrCat(duration.count()));
      };
      for (const NamedShare& share : kReportedShares) append(histogram->Percentile(share.share));
      append(histogram->max());
      append(histogram->mean());
    }
    absl::StrAppend(&csv, ",", level.check.right, ",", level.check.wrong, ",", level.check.unchecked, ",",
                    level.end == RunEnd::kInterrupted ? 1 : 0, ",", level.end == RunEnd::kRefused ? 1 : 0, "\n");
  }
  return csv;
}

}  // namespace triad::tools
