// The page of --html.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/tools/bench/bench_report.h"
#include "client/tools/bench/svg_chart.h"

namespace triad::tools {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --text: #1c2127; --faint: #d7dce2; --back: #ffffff; --bad: #c62828; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe3e8; --faint: #3a424c; --back: #15191e; --bad: #ff8a80; }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1080px;
       margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }
td, th { padding: .25em .5em; text-align: left; vertical-align: top; border-bottom: 1px solid var(--faint); }
td:first-child, th:first-child { padding-left: 0; }
td:last-child, th:last-child { padding-right: 0; }
td:last-child { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.wide td, .wide th { font-size: 13px; text-align: right; }
.wide td { white-space: nowrap; }
.wide td:first-child, .wide th:first-child { text-align: left; white-space: normal; min-width: 8em;
                                             position: sticky; left: 0; background: var(--back); }
svg { width: 100%; min-width: 600px; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--text); }
svg .title { font-size: 15px; font-weight: 600; }
svg .grid { stroke: var(--faint); }
.bad { color: var(--bad); }
)";

constexpr char kBlue[] = "#2f7ed8";
constexpr char kGrey[] = "#8a94a0";
constexpr char kRed[] = "#d64545";

std::string Row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string row = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&row, "<", tag, ">", EscapeHtml(cell), "</", tag, ">");
  return row + "</tr>\n";
}

// The members of `object`, nested ones by "outer inner".
void AppendSetup(std::string& html, const Json& object, const std::string& prefix) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      AppendSetup(html, value, absl::StrCat(prefix, name, " "));
    } else {
      html += Row({absl::StrCat(prefix, name), value.is_string() ? value.get<std::string>() : value.dump()});
    }
  }
}

// Of the summary. The charts have the others, and the page is as wide as these.
constexpr NamedShare kSummaryShares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

void AppendSummary(std::string& html, const BenchReport& report) {
  const bool is_open = std::any_of(report.levels.begin(), report.levels.end(), std::mem_fn(&LevelReport::is_open));
  std::vector<std::string> names = {"", "results/s"};
  if (report.slo) names.insert(names.end(), {"goodput/s", ToText(*report.slo)});
  names.emplace_back("errors");
  if (is_open) names.insert(names.end(), {"late", "dropped"});
  for (const NamedShare& share : kSummaryShares) names.emplace_back(share.name);
  names.insert(names.end(), {"queue p50", "compute p50"});
  html += "<div class=\"wide\"><table>\n" + Row(names, "th");
  for (const LevelReport& level : report.levels) {
    const RunResult& r = level.result;
    std::vector<std::string> cells = {level.label, absl::StrFormat("%.1f", r.throughput())};
    if (report.slo) {
      cells.push_back(absl::StrFormat("%.1f", r.goodput()));
      cells.emplace_back(report.slo->IsMet(r.within_slo, r.due()) ? "met" : "missed");
    }
    cells.push_back(absl::StrCat(r.answered() - r.succeeded()));
    if (is_open) cells.insert(cells.end(), {absl::StrCat(r.late), absl::StrCat(r.dropped)});
    for (const NamedShare& share : kSummaryShares) cells.push_back(ShortPercentile(r.latency, share.share));
    cells.insert(cells.end(), {ShortPercentile(r.queue, 0.5), ShortPercentile(r.compute, 0.5)});
    html += Row(cells);
  }
  html += "</table></div>\n";
}

// Latency by share, the upper tail stretched: x is the number of nines.
Chart DistributionChart(const RunResult& r) {
  constexpr double kNines = 5;
  Chart chart{.title = "Latency distribution"};
  chart.x = {.label = "share of requests that took at most so long",
             .low = 0,
             .high = kNines,
             .ticks = {{0, "0 %"},
                       {std::log10(2), "50 %"},
                       {1, "90 %"},
                       {2, "99 %"},
                       {3, "99.9 %"},
                       {4, "99.99 %"},
                       {5, "99.999 %"}}};
  chart.y = DurationAxis("latency", std::min(r.latency.min(), r.uncorrected.min()),
                         std::max(r.latency.max(), r.uncorrected.max()));
  Curve due{.name = "from when it was due", .color = kBlue};
  Curve sent{.name = "from when it was sent", .color = kGrey};
  for (double nines = 0; nines <= kNines; nines += 0.05) {
    const double share = 1 - std::pow(10, -nines);
    due.points.emplace_back(nines, LogNs(r.latency.Percentile(share)));
    sent.points.emplace_back(nines, LogNs(r.uncorrected.Percentile(share)));
  }
  chart.curves = {sent, due};
  return chart;
}

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Where the series of a run ends: inside its last interval where the run did; errors may come later than that.
double SeriesEnd(const RunResult& r) {
  const auto intervals = static_cast<int64_t>(r.series.intervals().size());
  const Duration end = intervals * r.series.interval();
  return InSeconds(r.elapsed > end - r.series.interval() ? std::min(r.elapsed, end) : end);
}

// A curve of counts over time, as rates; `count` picks the member. The last interval is shorter than the others, and so
// counts with the one before it: by itself a few late answers would look like a drop, or like a peak.
Curve RateCurve(const RunResult& r, int64_t TimeSeries::Interval::*count) {
  Curve curve;
  const auto& intervals = r.series.intervals();
  double from = 0;
  int64_t counted = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    counted += intervals[i].*count;
    if (i + 2 == intervals.size()) continue;
    const bool is_last = i + 1 == intervals.size();
    const double to = is_last ? SeriesEnd(r) : static_cast<double>(i + 1) * InSeconds(r.series.interval());
    const double rate = static_cast<double>(counted) / (to - from);
    if (curve.points.empty()) curve.points.emplace_back(from, rate);
    curve.points.emplace_back((from + to) / 2, rate);
    if (is_last) curve.points.emplace_back(to, rate);
    from = to;
    counted = 0;
  }
  return curve;
}

double LargestY(const Curve& curve) {
  double largest = 0;
  for (const auto& [x, y] : curve.points) largest = std::max(largest, y);
  return largest;
}

Axis TimeAxis(const RunResult& r) {
  const double end = r.series.intervals().empty() ? InSeconds(r.series.interval()) : SeriesEnd(r);
  Axis axis = LinearAxis("seconds since the start", end);
  axis.high = end;
  while (axis.ticks.back().at > end) axis.ticks.pop_back();
  return axis;
}

Chart ThroughputChart(const RunResult& r) {
  Curve results = RateCurve(r, &TimeSeries::Interval::succeeded);
  Curve sent = RateCurve(r, &TimeSeries::Interval::sent);
  results.name = "results";
  results.color = kBlue;
  results.is_filled = true;
  sent.name = "sent";
  sent.color = kGrey;
  return {.title = "Throughput over time",
          .x = TimeAxis(r),
          .y = LinearAxis("requests/s", std::max(LargestY(results), LargestY(sent))),
          .curves = {sent, results}};
}

// By when the answers came: where a load bends the server, it rises. A line leads over intervals without one.
Chart SlowestChart(const RunResult& r) {
  Curve slowest{.name = absl::StrCat("slowest answer of each ", ShortDuration(r.series.interval())), .color = kBlue};
  Duration least = r.latency.max();
  for (size_t i = 0; i < r.series.intervals().size(); ++i) {
    const TimeSeries::Interval& interval = r.series.intervals()[i];
    if (interval.succeeded == 0) continue;
    least = std::min(least, interval.slowest);
    for (const size_t edge : {i, i + 1}) {
      slowest.points.emplace_back(static_cast<double>(edge) * InSeconds(r.series.interval()), LogNs(interval.slowest));
    }
  }
  return {.title = "Latency over time",
          .x = TimeAxis(r),
          .y = DurationAxis("latency", least, r.latency.max()),
          .curves = {slowest}};
}

Chart ErrorChart(const RunResult& r) {
  Curve errors = RateCurve(r, &TimeSeries::Interval::failed);
  errors.name = "errors and dropped";
  errors.color = kRed;
  errors.is_filled = true;
  return {.title = "Errors over time",
          .x = TimeAxis(r),
          .y = LinearAxis("requests/s", LargestY(errors)),
          .curves = {errors}};
}

void AppendLevel(std::string& html, const LevelReport& level) {
  const RunResult& r = level.result;
  absl::StrAppend(&html, "<h2>", EscapeHtml(level.label), EndMark(level.end, ", "), "</h2>\n");
  if (!level.generator.ok()) {
    absl::StrAppend(&html, "<p class=\"bad\">", EscapeHtml(std::string(level.generator.message())), "</p>\n");
  }
  if (r.latency.empty()) html += "<p>No results.</p>\n";
  html += "<div class=\"wide\">\n";
  if (!r.latency.empty()) html += ToSvg(DistributionChart(r)) + ToSvg(SlowestChart(r));
  html += ToSvg(ThroughputChart(r)) + ToSvg(ErrorChart(r)) + "</div>\n";
  html += "<table>\n" + Row({"code", "answers", "first message"}, "th");
  for (size_t code = 0; code < kStatusCodes; ++code) {
    if (r.codes[code].count == 0) continue;
    html += Row({CodeName(code), absl::StrCat(r.codes[code].count), r.codes[code].first_message});
  }
  html += "</table>\n";
  absl::StrAppend(&html, level.check.wrong > 0 ? "<p class=\"bad\">" : "<p>", "Answers checked: ", level.check.right,
                  " right, ", level.check.wrong, " wrong, ", level.check.unchecked, " could not be checked. ",
                  EscapeHtml(level.check.first_wrong), "</p>\n");
}

}  // namespace

std::string ReportHtml(const BenchReport& report) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>triad bench</title>\n<style>",
      kStyle, "</style>\n</head>\n<body>\n<h1>triad bench</h1>\n");
  AppendSummary(html, report);
  if (report.search && report.search->highest_rate) {
    absl::StrAppend(&html, "<p>Highest rate that meets ", ToText(*report.slo), ": ",
                    absl::StrFormat("%.1f", *report.search->highest_rate), "/s",
                    report.search->generator_was_the_limit ? ", limited by the machine that sent" : "", "</p>\n");
  }
  for (const LevelReport& level : report.levels) AppendLevel(html, level);
  html += "<h2>Setup</h2>\n<table>\n";
  AppendSetup(html, report.setup, "");
  absl::StrAppendFormat(&html, "</table>\n<p>Percentiles are within %.1f %%.</p>\n</body>\n</html>\n",
                        LatencyHistogram::kRelativeError * 100);
  return html;
}

}  // namespace triad::tools
