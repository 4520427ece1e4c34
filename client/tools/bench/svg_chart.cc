#include "client/tools/bench/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/tools/bench/run_recorder.h"

namespace triad::tools {
namespace {

// The drawing, in units of its viewBox, and the plot inside it.
constexpr double kWidth = 720;
constexpr double kHeight = 300;
constexpr double kLeft = 72;
constexpr double kRight = 32;
constexpr double kTop = 56;
constexpr double kBottom = 48;

double PlaceOf(const Axis& axis, double at) { return std::clamp((at - axis.low) / (axis.high - axis.low), 0.0, 1.0); }
double XOf(const Chart& chart, double at) { return kLeft + PlaceOf(chart.x, at) * (kWidth - kLeft - kRight); }
double YOf(const Chart& chart, double at) {
  return kHeight - kBottom - PlaceOf(chart.y, at) * (kHeight - kTop - kBottom);
}

// The largest of 1, 2, 5 times a power of ten that is at most `value` > 0.
double RoundDown(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {5.0, 2.0}) {
    if (digit * power <= value * (1 + 1e-9)) return digit * power;
  }
  return power;
}
double NextRound(double round) {
  const double power = std::pow(10, std::floor(std::log10(round) + 1e-9));
  const double digit = std::round(round / power);
  return (digit < 2 ? 2 : digit < 5 ? 5 : 10) * power;
}

void AppendText(std::string& svg, double x, double y, const std::string& anchor, const std::string& text) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y, anchor,
                        EscapeHtml(text));
}

void AppendAxes(std::string& svg, const Chart& chart) {
  for (const Tick& tick : chart.y.ticks) {
    const double y = YOf(chart, tick.at);
    absl::StrAppendFormat(&svg, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", kLeft, y,
                          kWidth - kRight, y);
    AppendText(svg, kLeft - 6, y + 4, "end", tick.text);
  }
  for (const Tick& tick : chart.x.ticks) {
    const double x = XOf(chart, tick.at);
    absl::StrAppendFormat(&svg, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, kTop, x,
                          kHeight - kBottom);
    AppendText(svg, x, kHeight - kBottom + 16, "middle", tick.text);
  }
  AppendText(svg, (kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", chart.x.label);
  AppendText(svg, kLeft, kTop - 8, "start", chart.y.label);
}

void AppendCurve(std::string& svg, const Chart& chart, const Curve& curve) {
  if (curve.points.empty()) return;
  std::string path;
  for (const auto& [x, y] : curve.points) {
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", XOf(chart, x), YOf(chart, y));
  }
  if (curve.is_filled) {
    absl::StrAppendFormat(&svg, "<path d=\"%sL%.1f %.1fL%.1f %.1fZ\" fill=\"%s\" fill-opacity=\"0.15\"/>", path,
                          XOf(chart, curve.points.back().first), kHeight - kBottom,
                          XOf(chart, curve.points.front().first), kHeight - kBottom, curve.color);
  }
  absl::StrAppendFormat(&svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>", path, curve.color);
}

void AppendLegend(std::string& svg, const Chart& chart) {
  double x = kWidth - kRight;
  for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
    AppendText(svg, x, 20, "end", curve->name);
    x -= 7.0 * static_cast<double>(curve->name.size()) + 8;
    absl::StrAppendFormat(&svg, "<rect x=\"%.1f\" y=\"14\" width=\"14\" height=\"4\" fill=\"%s\"/>", x - 14,
                          curve->color);
    x -= 30;
  }
}

}  // namespace

double LogNs(Duration duration) { return std::log10(std::max<double>(1, static_cast<double>(duration.count()))); }

Axis LinearAxis(const std::string& label, double largest) {
  constexpr double kTicks = 5;
  Axis axis{.label = label};
  const double step = largest > 0 ? NextRound(RoundDown(largest / kTicks)) : 1;
  axis.high = std::max(1.0, std::ceil(largest / step - 1e-9)) * step;
  for (double at = 0; at <= axis.high * (1 + 1e-9); at += step) axis.ticks.push_back({at, absl::StrFormat("%g", at)});
  return axis;
}

Axis DurationAxis(const std::string& label, Duration smallest, Duration largest) {
  constexpr double kManyDecades = 3;
  const double first = RoundDown(std::max<double>(1, static_cast<double>(smallest.count())));
  const double last = std::max<double>(first, static_cast<double>(largest.count()));
  const bool only_powers = std::log10(last / first) > kManyDecades;
  Axis axis{.label = label, .low = std::log10(first)};
  for (double at = first;; at = NextRound(at)) {
    const bool is_power = std::abs(std::log10(at) - std::round(std::log10(at))) < 1e-6;
    if (is_power || !only_powers) {
      axis.ticks.push_back({std::log10(at), ShortDuration(Duration(std::llround(at)))});
    }
    axis.high = std::log10(at);
    if (at >= last && at > first) break;
  }
  return axis;
}

std::string ToSvg(const Chart& chart) {
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">", kWidth, kHeight,
                                    EscapeHtml(chart.title));
  absl::StrAppendFormat(&svg, "<text class=\"title\" x=\"%g\" y=\"20\">%s</text>", kLeft, EscapeHtml(chart.title));
  AppendAxes(svg, chart);
  for (const Curve& curve : chart.curves) AppendCurve(svg, chart, curve);
  AppendLegend(svg, chart);
  return svg + "</svg>\n";
}

std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace triad::tools
