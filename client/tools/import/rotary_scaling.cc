#include "client/tools/import/rotary_scaling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace triad::tools {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kDefaultTheta = 10000;  // where a file does not say (Su et al. 2021)

// What the rules start from.
struct Unscaled {
  int64_t dim;
  double theta;
  std::vector<double> frequencies;       // inverse, dim / 2 of them
  std::optional<int64_t> max_positions;  // that the model was made for
};

// theta^(-2 i / dim).
std::vector<double> Frequencies(int64_t dim, double theta) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dim / 2; ++i) {
    frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
  }
  return frequencies;
}

// Position interpolation (Chen et al. 2023, arXiv:2306.15595): every position is divided by the factor.
void ScaleLinear(ConfigReader& scaling, RotaryText& rotary) {
  const double factor = scaling.Number("factor");
  for (double& frequency : rotary.inverse_frequencies) frequency /= factor;
}

// Llama 3.1: waves longer than the original context are stretched by the factor, those much shorter are kept, and
// between the two the share of either is linear in the number of turns.
void ScaleLlama3(ConfigReader& scaling, RotaryText& rotary) {
  const double factor = scaling.Number("factor");
  const double low = scaling.Number("low_freq_factor");
  const double high = scaling.Number("high_freq_factor");
  const auto original = static_cast<double>(scaling.Size("original_max_position_embeddings"));
  if (high <= low) scaling.Refuse("high_freq_factor", "must be larger than low_freq_factor");
  for (double& frequency : rotary.inverse_frequencies) {
    const double wavelength = 2 * kPi / frequency;
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      frequency /= factor;
      continue;
    }
    const double kept = (original / wavelength - low) / (high - low);
    frequency = (1 - kept) * frequency / factor + kept * frequency;
  }
}

// 0.1 mscale ln(s) + 1 (YaRN, section 3.4).
double YarnFactor(double scale, double mscale) { return scale <= 1 ? 1 : 0.1 * mscale * std::log(scale) + 1; }

double YarnAttentionFactor(ConfigReader& scaling, double factor) {
  if (scaling.Has("attention_factor")) return scaling.Number("attention_factor");
  // DeepSeek's two factors, which count together or not at all.
  if (scaling.Has("mscale") && scaling.Has("mscale_all_dim")) {
    return YarnFactor(factor, scaling.Number("mscale")) / YarnFactor(factor, scaling.Number("mscale_all_dim"));
  }
  return YarnFactor(factor, /*mscale=*/1);
}

// YaRN (Peng et al. 2023, arXiv:2309.00071, section 3.2): pairs that turn less than beta_slow times within the original
// context are stretched by the factor, those that turn more than beta_fast times are kept, and between the two the
// share of either is linear in the pair's index.
void ScaleYarn(const Unscaled& unscaled, ConfigReader& scaling, RotaryText& rotary) {
  const double factor = scaling.Number("factor");
  const auto original = static_cast<double>(scaling.Size("original_max_position_embeddings", unscaled.max_positions));
  const double beta_fast = scaling.Number("beta_fast", 32.0);
  const double beta_slow = scaling.Number("beta_slow", 1.0);
  if (unscaled.theta == 1) scaling.Refuse("rope_theta", "of 1 leaves nothing to scale");
  const auto dim = static_cast<double>(unscaled.dim);
  // The index (not whole) of the pair that turns `turns` times.
  const auto pair_of = [&](double turns) {
    return dim * std::log(original / (turns * 2 * kPi)) / (2 * std::log(unscaled.theta));
  };
  double first = pair_of(beta_fast);
  double last = pair_of(beta_slow);
  if (scaling.Flag("truncate", true)) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dim - 1);
  if (first == last) last += 0.001;  // as the published code has it
  for (size_t i = 0; i < rotary.inverse_frequencies.size(); ++i) {
    double& frequency = rotary.inverse_frequencies[i];
    const double stretched = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    frequency = stretched * frequency / factor + (1 - stretched) * frequency;
  }
  rotary.attention_factor = YarnAttentionFactor(scaling, factor);
}

// `scaling` has rope_type, or type as it was called before.
void Scale(const Unscaled& unscaled, ConfigReader& scaling, RotaryText& rotary) {
  const std::string field = scaling.Has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling.Text(field);
  if (type == "default") return;
  rotary.inverse_frequencies = unscaled.frequencies;
  if (type == "linear") {
    ScaleLinear(scaling, rotary);
  } else if (type == "llama3") {
    ScaleLlama3(scaling, rotary);
  } else if (type == "yarn") {
    ScaleYarn(unscaled, scaling, rotary);
  } else {
    scaling.Refuse(field, "must be default, linear, llama3 or yarn");
  }
}

}  // namespace

RotaryText ReadRotary(ConfigReader& config, int64_t dim) {
  if (dim % 2 != 0) {
    config.Update(absl::InvalidArgumentError(
        absl::StrCat(config.where(), ": a rotary embedding needs heads of even width; was ", dim)));
    return {};
  }
  if (config.Number("partial_rotary_factor", 1.0) != 1) config.Refuse("partial_rotary_factor", "must be 1");
  RotaryText rotary = {.dim = dim, .theta = config.Number("rope_theta", kDefaultTheta), .inverse_frequencies = {}};
  const std::string field = config.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!config.Has(field)) return rotary;
  if (!config.object()[field].is_object()) {
    config.Refuse(field, "must be an object");
    return rotary;
  }
  ConfigReader scaling(config.object()[field], absl::StrCat(config.where(), ": ", field));
  rotary.theta = scaling.Number("rope_theta", rotary.theta);
  if (scaling.Number("partial_rotary_factor", 1.0) != 1) scaling.Refuse("partial_rotary_factor", "must be 1");
  Unscaled unscaled = {
      .dim = dim, .theta = rotary.theta, .frequencies = Frequencies(dim, rotary.theta), .max_positions = {}};
  if (config.Has("max_position_embeddings")) unscaled.max_positions = config.Size("max_position_embeddings");
  Scale(unscaled, scaling, rotary);
  config.Update(scaling.status());
  for (const double frequency : rotary.inverse_frequencies) {
    if (!std::isfinite(frequency)) config.Refuse(field, "gives frequencies past the range of f64");
  }
  return rotary;
}

}  // namespace triad::tools
