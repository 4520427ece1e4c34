// Line charts as SVG text, to stand inside an HTML page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace triad::tools {

struct Tick {
  double at = 0;  // in the axis's own coordinate
  std::string text = {};
};

// From `low` to `high` > `low`, in a coordinate of the chart's choice: a logarithm where the axis is logarithmic.
struct Axis {
  std::string label = {};
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks = {};
};

// From 0 to a round number not below `largest`, with about five round ticks.
Axis LinearAxis(const std::string& label, double largest);
// The decimal logarithm of nanoseconds, over whole steps of 1, 2, 5 that hold both; ticks are such steps or, over many
// decades, powers of ten.
Axis DurationAxis(const std::string& label, Duration smallest, Duration largest);
// What DurationAxis measures; below 1 ns counts as 1 ns.
double LogNs(Duration duration);

struct Curve {
  std::string name = {};
  std::string color = {};                              // of CSS
  std::vector<std::pair<double, double>> points = {};  // x ascending, in the axes' coordinates
  bool is_filled = false;                              // down to the x axis
};

struct Chart {
  std::string title = {};
  Axis x = {};
  Axis y = {};
  std::vector<Curve> curves = {};
};

// An <svg> element with a viewBox, so that the page decides its size. Points outside the axes are drawn at the edge.
std::string ToSvg(const Chart& chart);

// Text as HTML shows it: & < > " are escaped.
std::string EscapeHtml(const std::string& text);

}  // namespace triad::tools
