#include "tests/support/layer_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/attention/validate_attention.h"

namespace triad {
namespace {

// Real is the type that sums are kept in.
template <class Real>
class Layer {
 public:
  Layer(const LayerSpec& spec, const LayerTensors& tensors, const LayerSequence& sequence)
      : spec_(spec),
        tensors_(tensors),
        sequence_(sequence),
        tokens_(static_cast<int64_t>(sequence.input.size()) / spec.model_dim),
        keys_(spec.is_cross() ? static_cast<int64_t>(sequence.context.size()) / spec.context_dim : tokens_),
        slopes_(spec.alibi ? StandardAlibiSlopes(spec.heads) : spec.alibi_slopes) {}

  LayerAnswer Run() {
    const std::vector<float>& context = spec_.is_cross() ? sequence_.context : sequence_.input;
    query_ = Project(tensors_.query, sequence_.input, spec_.model_dim);
    key_ = Project(tensors_.key, context, spec_.key_input_dim());
    value_ = Project(tensors_.value, context, spec_.key_input_dim());
    Rotate(query_, spec_.heads);
    Rotate(key_, spec_.kv_heads);
    for (std::vector<Real>* rows : {&query_, &key_, &value_}) RoundResults(*rows);
    mixed_.assign(static_cast<size_t>(tokens_ * spec_.mixed_width()), 0);
    answer_.lse.assign(static_cast<size_t>(spec_.heads * tokens_), 0);
    answer_.weights.assign(static_cast<size_t>(spec_.heads * tokens_ * keys_), 0);
    for (int64_t head = 0; head < spec_.heads; ++head) {
      for (int64_t i = 0; i < tokens_; ++i) Attend(head, i);
    }
    RoundResults(mixed_);
    for (Real value : Project(tensors_.output, mixed_, spec_.mixed_width())) answer_.output.push_back(value);
    return answer_;
  }

 private:
  static constexpr bool kRoundsResults = sizeof(Real) == sizeof(float);

  Real RoundInput(Real value) const {
    return spec_.compute == DType::kBf16 ? Bf16ToF32(F32ToBf16(static_cast<float>(value))) : value;
  }

  void RoundResults(std::vector<Real>& values) const {
    for (Real& value : values) value = kRoundsResults ? RoundInput(value) : value;
  }

  template <class Element>
  std::vector<Real> Project(const ProjectionTensors& tensors, const std::vector<Element>& rows, int64_t inputs) const {
    const auto* weight = reinterpret_cast<const float*>(tensors.weight.data());
    const auto* bias = reinterpret_cast<const float*>(tensors.bias.data());
    const int64_t outputs = tensors.weight.shape()[0];
    // f64 results between the projections are not inputs: they stay as they are.
    const bool rounds = kRoundsResults || sizeof(Element) == sizeof(float);
    std::vector<Real> results;
    for (size_t row = 0; row < rows.size(); row += static_cast<size_t>(inputs)) {
      for (int64_t o = 0; o < outputs; ++o) {
        Real sum = 0;
        for (int64_t i = 0; i < inputs; ++i) {
          const Real input = static_cast<Real>(rows[row + static_cast<size_t>(i)]);
          sum += (rounds ? RoundInput(input) : input) * RoundInput(weight[o * inputs + i]);
        }
        results.push_back(tensors.bias.element_count() > 0 ? sum + bias[o] : sum);
      }
    }
    return results;
  }

  void Rotate(std::vector<Real>& rows, int64_t heads) const {
    const RotarySpec& rotary = spec_.rotary;
    const int64_t pairs = rotary.dim / 2;
    const int64_t row_count = static_cast<int64_t>(rows.size()) / (heads * spec_.qk_head_dim);
    for (int64_t row = 0; row < row_count && pairs > 0; ++row) {
      for (int64_t head = 0; head < heads; ++head) {
        Real* dims = &rows[static_cast<size_t>((row * heads + head) * spec_.qk_head_dim)];
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const double frequency = rotary.inverse_frequencies.empty()
                                       ? std::pow(rotary.theta, -2.0 * pair / rotary.dim)
                                       : rotary.inverse_frequencies[pair];
          const double angle = static_cast<double>(sequence_.position_offset + row) * frequency;
          const double cosine = std::cos(angle) * rotary.attention_factor;
          const double sine = std::sin(angle) * rotary.attention_factor;
          const bool halves = rotary.pairs == RotaryPairs::kHalves;
          Real& x = dims[halves ? pair : 2 * pair];
          Real& y = dims[halves ? pair + pairs : 2 * pair + 1];
          const double turned_x = x * cosine - y * sine;
          y = static_cast<Real>(y * cosine + x * sine);
          x = static_cast<Real>(turned_x);
        }
      }
    }
  }

  bool IsVisible(int64_t position, int64_t j) const {
    if (spec_.causal && j > position) return false;
    if (!spec_.window) return true;
    if (spec_.window->left && j < position - *spec_.window->left) return false;
    return !spec_.window->right || j <= position + *spec_.window->right;
  }

  // Query i of head `head` against every key.
  void Attend(int64_t head, int64_t i) {
    const int64_t kv_head = head / (spec_.heads / spec_.kv_heads);
    const int64_t position = i + (spec_.alignment == Alignment::kBottomRight ? keys_ - tokens_ : 0);
    const Real scale = spec_.scale ? *spec_.scale : static_cast<Real>(1 / std::sqrt(double(spec_.qk_head_dim)));
    const Real* query = &query_[static_cast<size_t>((i * spec_.heads + head) * spec_.qk_head_dim)];
    const Real hidden = -std::numeric_limits<Real>::infinity();
    const Real sink = spec_.sinks.empty() ? hidden : spec_.sinks[head];
    std::vector<Real> scores(static_cast<size_t>(keys_), hidden);
    Real max = sink;
    for (int64_t j = 0; j < keys_; ++j) {
      if (!IsVisible(position, j)) continue;
      const Real* key = &key_[static_cast<size_t>((j * spec_.kv_heads + kv_head) * spec_.qk_head_dim)];
      Real score = 0;
      for (int64_t d = 0; d < spec_.qk_head_dim; ++d) score += query[d] * key[d];
      score *= scale;
      if (spec_.logit_softcap > 0) score = spec_.logit_softcap * std::tanh(score / spec_.logit_softcap);
      if (!slopes_.empty()) score -= slopes_[head] * static_cast<Real>(std::abs(position - j));
      scores[j] = score;
      max = std::max(max, score);
    }
    if (max == hidden) {
      answer_.lse[head * tokens_ + i] = max;
      return;
    }
    Real denominator = std::exp(sink - max);
    for (Real score : scores) denominator += std::exp(score - max);
    answer_.lse[head * tokens_ + i] = max + std::log(denominator);
    Real* mixed = &mixed_[static_cast<size_t>((i * spec_.heads + head) * spec_.v_head_dim)];
    for (int64_t j = 0; j < keys_; ++j) {
      const Real weight = std::exp(scores[j] - max) / denominator;
      answer_.weights[(head * tokens_ + i) * keys_ + j] = weight;
      const Real* value = &value_[static_cast<size_t>((j * spec_.kv_heads + kv_head) * spec_.v_head_dim)];
      const Real factor = kRoundsResults ? RoundInput(weight) : weight;
      for (int64_t d = 0; d < spec_.v_head_dim; ++d) mixed[d] += factor * value[d];
    }
  }

  const LayerSpec& spec_;
  const LayerTensors& tensors_;
  const LayerSequence& sequence_;
  const int64_t tokens_;
  const int64_t keys_;
  const std::vector<float> slopes_;
  std::vector<Real> query_;  // [tokens, heads, qk_head_dim]
  std::vector<Real> key_;    // [keys, kv_heads, qk_head_dim]
  std::vector<Real> value_;  // [keys, kv_heads, v_head_dim]
  std::vector<Real> mixed_;  // [tokens, heads, v_head_dim]
  LayerAnswer answer_;
};

}  // namespace

LayerAnswer ReferenceForward(const LayerSpec& spec, const LayerTensors& tensors, const LayerSequence& sequence,
                             LayerArithmetic arithmetic) {
  if (arithmetic == LayerArithmetic::kNaive) return Layer<float>(spec, tensors, sequence).Run();
  return Layer<double>(spec, tensors, sequence).Run();
}

}  // namespace triad
