#include "client/tools/bench/bench_report.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Ten requests: eight results after 1 to 8 ms, two refused.
LevelReport Level(const std::string& label) {
  const Time start = Time(std::chrono::hours(1));
  const RecorderOptions options = {.slo = ServiceLevel{.share = 0.5, .limit = milliseconds(4)}};
  RunRecorder recorder(options, start);
  for (int i = 1; i <= 10; ++i) {
    const RequestTimes times = {.due = start, .sent = start, .answered = start + milliseconds(i)};
    recorder.OnSent(times.due, times.sent);
    if (i <= 8) {
      recorder.OnResult(
          times,
          {.queue = absl::Microseconds(10), .compute = absl::Microseconds(200), .total = absl::Microseconds(250)});
    } else {
      recorder.OnError(times, absl::ResourceExhaustedError("busy <now>"));
    }
  }
  recorder.OnSendingEnded(start + milliseconds(100));
  return {.label = label, .is_open = true, .result = recorder.Result(), .check = {.right = 2}};
}

BenchReport Report(std::vector<LevelReport> levels) {
  return {.setup = {{"workload", {{"kind", "attend"}}}, {"target", "far:1"}},
          .slo = ServiceLevel{.share = 0.5, .limit = milliseconds(4)},
          .levels = std::move(levels)};
}

std::string Print(const BenchReport& report) {
  std::ostringstream out;
  PrintReport(report, out);
  return out.str();
}

TEST(BenchReportTest, OneLevelIsToldInFull) {
  EXPECT_THAT(Print(Report({Level("rate 100/s")})),
              AllOf(HasSubstr("kind                    attend"), HasSubstr("rate 100/s: 8 results in 100ms, 80.0/s"),
                    HasSubstr("percentiles within 0.2 %"), HasSubstr("from due"), HasSubstr("from sent"),
                    HasSubstr("RESOURCE_EXHAUSTED            2  busy <now>"),
                    HasSubstr("of 10 due: 10 sent, 0 of them late, 0 dropped"),
                    HasSubstr("p50=4ms is missed: 40.00 % within; goodput 40.0/s"),
                    HasSubstr("answers checked: 2 right, 0 wrong")));
}

TEST(BenchReportTest, SeveralLevelsAreATableWithARowEach) {
  const std::string text = Print(Report({Level("rate 100/s"), Level("rate 200/s")}));
  EXPECT_THAT(text, AllOf(HasSubstr("\nrate 100/s "), HasSubstr("\nrate 200/s "), HasSubstr("missed\n"),
                          HasSubstr("RESOURCE_EXHAUSTED            4"), HasSubstr("answers checked: 4 right")));
}

TEST(BenchReportTest, ASearchSaysWhatItFoundAndWhoseLimitItIs) {
  BenchReport report = Report({Level("rate 100/s")});
  report.search = {.highest_rate = 80, .requests = 2, .generator_was_the_limit = true};
  EXPECT_THAT(Print(report), AllOf(HasSubstr("highest rate that meets p50=4ms: 80.0/s"), Not(HasSubstr("its run had")),
                                   HasSubstr("this machine could not keep up with sending")));
  EXPECT_EQ(ReportJson(report)["search"]["highest_rate"], 80);
  EXPECT_EQ(ReportJson(report)["search"]["requests"], 2);
}

TEST(BenchReportTest, ASearchWhoseBestRunWasTooShortSaysSo) {
  BenchReport report = Report({Level("rate 100/s")});
  report.slo = *ParseServiceLevel("p99.9=4ms");
  report.search = {.highest_rate = 80, .requests = 999};
  EXPECT_THAT(Print(report), HasSubstr("its run had only 999 requests, and that objective is about 1000 and more"));
}

TEST(BenchReportTest, JsonHasEveryFigure) {
  const Json json = ReportJson(Report({Level("rate 100/s")}));
  const Json& level = json["levels"][0];
  EXPECT_EQ(level["results"], 8);
  EXPECT_EQ(level["due"], 10);
  EXPECT_EQ(level["latency"]["max_ns"], 8'000'000);
  EXPECT_EQ(level["server_compute"]["p50_ns"], 200'000);
  EXPECT_EQ(level["codes"]["RESOURCE_EXHAUSTED"]["count"], 2);
  EXPECT_EQ(level["slo"]["within"], 4);
  EXPECT_EQ(level["slo"]["met"], false);
  EXPECT_EQ(level["check"]["right"], 2);
  EXPECT_EQ(level["series"]["succeeded"][0], 8);
  EXPECT_EQ(json["setup"]["target"], "far:1");
}

TEST(BenchReportTest, CsvHasARowForEachLevelAndAsManyFieldsAsNames) {
  const std::string csv = ReportCsv(Report({Level("rate 100/s"), Level("rate 200/s")}));
  std::istringstream lines(csv);
  std::vector<int64_t> commas;
  for (std::string line; std::getline(lines, line);) commas.push_back(std::count(line.begin(), line.end(), ','));
  ASSERT_EQ(commas.size(), 3u);
  EXPECT_EQ(commas[1], commas[0]);
  EXPECT_EQ(commas[2], commas[0]);
  BenchReport without = Report({Level("rate 100/s")});
  without.slo.reset();
  const std::string plain = ReportCsv(without);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), ','), 2 * commas[0]);
}

TEST(BenchReportTest, WithoutAResultThereAreNoPercentiles) {
  LevelReport refused{.label = "concurrency 1"};
  refused.result.elapsed = milliseconds(7);
  const BenchReport report = Report({refused});
  EXPECT_THAT(Print(report), AllOf(HasSubstr("from due     none\n"), Not(HasSubstr("0ns"))));
  const Json level = ReportJson(report)["levels"][0];
  for (const char* figure : {"p50_ns", "p99.99_ns", "max_ns", "mean_ns", "min_ns"}) {
    EXPECT_TRUE(level["latency"][figure].is_null()) << figure;
  }
  EXPECT_THAT(ReportCsv(report), HasSubstr(",,,,,,"));
  EXPECT_THAT(ReportHtml(report), AllOf(HasSubstr("No results."), Not(HasSubstr("0ns"))));
  const std::string table = Print(Report({refused, refused}));
  EXPECT_THAT(table, AllOf(HasSubstr("       -        -"), Not(HasSubstr("0ns"))));
}

TEST(BenchReportTest, AnInterruptedLevelIsMarkedInEveryForm) {
  BenchReport report = Report({Level("rate 100/s")});
  EXPECT_THAT(Print(report), Not(HasSubstr("interrupted")));
  EXPECT_EQ(ReportJson(report)["levels"][0]["interrupted"], false);
  report.levels[0].end = RunEnd::kInterrupted;
  EXPECT_THAT(Print(report), HasSubstr("80.0/s, interrupted\n"));
  EXPECT_EQ(ReportJson(report)["levels"][0]["interrupted"], true);
  EXPECT_THAT(ReportCsv(report), HasSubstr(",1,0\n"));
  EXPECT_THAT(ReportHtml(report), HasSubstr("rate 100/s, interrupted"));
  report.levels.push_back(report.levels[0]);
  EXPECT_THAT(Print(report), HasSubstr("missed  interrupted\n"));
}

TEST(BenchReportTest, ALevelRefusedForGoodIsMarkedInEveryForm) {
  BenchReport report = Report({Level("rate 100/s")});
  EXPECT_EQ(ReportJson(report)["levels"][0]["refused"], false);
  report.levels[0].end = RunEnd::kRefused;
  EXPECT_THAT(Print(report), HasSubstr("80.0/s, refused for good\n"));
  EXPECT_EQ(ReportJson(report)["levels"][0]["refused"], true);
  EXPECT_THAT(ReportCsv(report), HasSubstr(",0,1\n"));
  EXPECT_THAT(ReportHtml(report), HasSubstr("rate 100/s, refused for good"));
}

TEST(BenchReportTest, TheHtmlPageNeedsNothingElse) {
  const std::string html = ReportHtml(Report({Level("rate 100/s"), Level("rate 200/s")}));
  EXPECT_THAT(html, AllOf(HasSubstr("Latency distribution"), HasSubstr("Throughput over time"),
                          HasSubstr("Errors over time"), HasSubstr("busy &lt;now&gt;"), HasSubstr("</html>")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("http")), Not(HasSubstr("src=")), Not(HasSubstr("<link")),
                          Not(HasSubstr("@import")), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

// The cells of the first row of `html` that has `tag` for them.
std::vector<std::string> FirstRow(const std::string& html, const std::string& tag) {
  std::vector<std::string> cells;
  const std::string open = "<" + tag + ">";
  const std::string row = html.substr(html.find("<tr>" + open));
  for (size_t at = 0, end = row.find("</tr>"); (at = row.find(open, at)) < end;) {
    at += open.size();
    cells.push_back(row.substr(at, row.find('<', at) - at));
  }
  return cells;
}

TEST(HtmlPageTest, WhatMattersStandsFirst) {
  const std::string html = ReportHtml(Report({Level("rate 100/s")}));
  const std::vector<std::string> names = FirstRow(html, "th");
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 7),
            (std::vector<std::string>{"", "results/s", "goodput/s", "p50=4ms", "errors", "late", "dropped"}));
  EXPECT_LE(names.size(), 14u) << "what 1080 pixels hold";
  const std::vector<std::string> cells = FirstRow(html, "td");
  ASSERT_EQ(cells.size(), names.size());
  EXPECT_EQ(std::vector<std::string>(cells.begin(), cells.begin() + 7),
            (std::vector<std::string>{"rate 100/s", "80.0", "40.0", "missed", "2", "0", "0"}));
}

TEST(HtmlPageTest, AClosedLoopHasNoColumnsOfASchedule) {
  BenchReport report = Report({Level("concurrency 1")});
  report.levels[0].is_open = false;
  report.slo.reset();
  const std::vector<std::string> names = FirstRow(ReportHtml(report), "th");
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 4),
            (std::vector<std::string>{"", "results/s", "errors", "p50"}));
  EXPECT_EQ(FirstRow(ReportHtml(report), "td").size(), names.size());
}

// The points of the last curve in the chart called `title`.
std::vector<std::pair<double, double>> LastCurve(const std::string& html, const std::string& title) {
  const std::string chart = html.substr(html.find("aria-label=\"" + title), html.find("</svg>", html.find(title)));
  const size_t path = chart.rfind("<path d=\"", chart.find("</svg>")) + 9;
  std::string text = chart.substr(path, chart.find('"', path) - path);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == 'M' || c == 'L'; }, ' ');
  std::istringstream numbers(text);
  std::vector<std::pair<double, double>> points;
  for (double x = 0, y = 0; numbers >> x >> y;) points.emplace_back(x, y);
  return points;
}

// A result every 10 ms, the last one at `end`, each after 1 ms or, from `slow_from` on, 20 ms.
LevelReport Steady(Duration end, Duration slow_from = std::chrono::hours(1)) {
  RunRecorder recorder({}, Time());
  for (Duration at = milliseconds(5); at <= end; at += milliseconds(10)) {
    const RequestTimes times = {
        .due = Time(at - milliseconds(at < slow_from ? 1 : 20)), .sent = Time(at), .answered = Time(at)};
    recorder.OnSent(times.due, times.sent);
    recorder.OnResult(times, {});
  }
  return {.label = "steady", .result = recorder.Result()};
}

TEST(HtmlPageTest, AnIntervalThatTheRunEndsInIsNoDropOfThroughput) {
  for (const int end : {55, 105, 205, 245, 295}) {
    const auto points = LastCurve(ReportHtml(Report({Steady(milliseconds(end))})), "Throughput over time");
    ASSERT_GE(points.size(), 3u) << end;
    const auto [least, most] = std::minmax_element(points.begin(), points.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LT(most->second - least->second, 20) << end << " ms; the plot is 196 high, and holds about 100/s";
    EXPECT_EQ(points.front().first, 72) << "from the left edge";
    EXPECT_EQ(points.back().first, 688) << "to the right";
  }
}

TEST(HtmlPageTest, ErrorsAfterTheLastResultKeepTheirIntervals) {
  LevelReport level = Steady(milliseconds(195));
  for (int i = 0; i < 10; ++i) level.result.series.AddFailed(milliseconds(950));
  const auto errors = LastCurve(ReportHtml(Report({level})), "Errors over time");
  EXPECT_LT(errors.back().second, errors.front().second) << "higher up: there are some";
  EXPECT_EQ(errors.back().first, 688);
}

TEST(HtmlPageTest, LatencyOverTimeShowsWhereItRises) {
  const std::string html = ReportHtml(Report({Steady(milliseconds(1000), /*slow_from=*/milliseconds(500))}));
  EXPECT_THAT(html, AllOf(HasSubstr("Latency over time"), HasSubstr("slowest answer of each 100ms")));
  const auto points = LastCurve(html, "Latency over time");
  ASSERT_EQ(points.size(), 20u) << "two for each";
  for (size_t i = 1; i < points.size(); ++i) {
    if (i == 10) {
      EXPECT_LT(points[i].second, points[i - 1].second) << "higher up: slower";
    } else {
      EXPECT_EQ(points[i].second, points[i - 1].second) << i;
    }
  }
}

TEST(HtmlPageTest, WithoutAResultThereIsNoLatencyOverTime) {
  EXPECT_THAT(ReportHtml(Report({LevelReport{.label = "concurrency 1"}})),
              AllOf(Not(HasSubstr("Latency over time")), HasSubstr("Throughput over time"), Not(HasSubstr("nan"))));
}

TEST(VerdictTest, ErrorsAndAMissedObjectiveAreResults) {
  EXPECT_EQ(Verdict(Report({Level("rate 100/s")})), absl::OkStatus());
}

TEST(VerdictTest, WrongAnswersFail) {
  BenchReport report = Report({Level("rate 100/s")});
  report.levels[0].check.wrong = 1;
  EXPECT_EQ(Verdict(report).code(), absl::StatusCode::kDataLoss);
}

TEST(VerdictTest, AnInterruptFailsWhateverElseIsMissing) {
  BenchReport report = Report({LevelReport{.label = "concurrency 1", .end = RunEnd::kInterrupted}});
  EXPECT_EQ(Verdict(report).code(), absl::StatusCode::kCancelled);
}

TEST(VerdictTest, AnInterruptedCheckFailsAndSaysWhatIsLeft) {
  BenchReport report = Report({Level("rate 100/s"), Level("rate 200/s")});
  report.levels[1].check.unchecked = 5;
  EXPECT_EQ(Verdict(report), absl::OkStatus());
  report.levels[1].check.interrupted = 3;
  EXPECT_EQ(Verdict(report).code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(Verdict(report).message()), HasSubstr("3 sampled answers were left unchecked"));
  EXPECT_EQ(ReportJson(report)["levels"][1]["check"]["interrupted"], 3);
}

TEST(VerdictTest, RefusalsForGoodFailWithTheServersMessage) {
  BenchReport report = Report({Level("rate 100/s"), LevelReport{.label = "rate 200/s", .end = RunEnd::kRefused}});
  report.levels[1].result.codes[static_cast<size_t>(absl::StatusCode::kNotFound)] = {.count = 10,
                                                                                     .first_message = "no such layer"};
  EXPECT_EQ(Verdict(report).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Verdict(report).message()), HasSubstr("ended early"));
  EXPECT_THAT(std::string(Verdict(report).message()), HasSubstr("no such layer"));
}

TEST(VerdictTest, AGeneratorThatCouldNotKeepUpFailsARunAndBoundsASearch) {
  BenchReport report = Report({Level("rate 100/s")});
  report.levels[0].generator = absl::OutOfRangeError("late");
  EXPECT_EQ(Verdict(report).message(), "rate 100/s: late");
  report.search = {.highest_rate = 50};
  EXPECT_EQ(Verdict(report), absl::OkStatus());
  report.search = BenchReport::Search();
  EXPECT_FALSE(Verdict(report).ok());
}

TEST(VerdictTest, WithoutASingleResultTheFirstErrorIsTheVerdict) {
  BenchReport report = Report({LevelReport{.label = "concurrency 1"}});
  EXPECT_FALSE(Verdict(report).ok());
  report.levels[0].result.codes[static_cast<size_t>(absl::StatusCode::kUnavailable)] = {.count = 1,
                                                                                        .first_message = "gone"};
  EXPECT_EQ(Verdict(report).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Verdict(report).message()), HasSubstr("gone"));
}

}  // namespace
}  // namespace triad::tools
