#include "tests/support/attention_content.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

// Not the standard distributions: their sequences differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  bool Chance(double ratio) { return Uniform() < ratio; }
  int64_t Below(int64_t end) { return static_cast<int64_t>(Uniform() * static_cast<double>(end)); }
  int64_t Pick(std::initializer_list<int64_t> choices) {
    return choices.begin()[Below(static_cast<int64_t>(choices.size()))];
  }
  // N(0, 1), by Box and Muller.
  float Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return static_cast<float>(radius * std::cos(2 * std::numbers::pi * Uniform()));
  }

 private:
  std::mt19937_64 engine_;
};

Array4 RandomTensor(std::array<int64_t, 4> shape, DType dtype, float gain, Random& random) {
  Array4 tensor(shape, 0);
  for (float& value : tensor.values) value = Round(dtype, gain * random.Normal());
  return tensor;
}

std::array<int64_t, 4> MaskShape(const AttentionOptions& options, const MaskSharing& sharing) {
  return {sharing.batch ? 1 : options.batch, sharing.heads ? 1 : options.heads, sharing.queries ? 1 : options.q_len,
          options.kv_len};
}

// Lengths, causal and window; not the masks.
bool IsInRange(const AttentionContent& content, int64_t b, int64_t i, int64_t j) {
  const AttentionOptions& options = content.options;
  if (i >= content.query_length(b) || j >= content.key_length(b)) return false;
  const int64_t distance = j - content.position(b, i);
  if (options.causal && distance > 0) return false;
  if (!options.window) return true;
  return !(options.window->left && -distance > *options.window->left) &&
         !(options.window->right && distance > *options.window->right);
}

bool IsKept(const AttentionContent& content, int64_t b, int64_t h, int64_t i, int64_t j) {
  return !content.keep || content.keep->Shared(b, h, i, j) != 0;
}

// Calls visit(b, h, i, j) for every pair of a query and a key.
template <class Visit>
void ForEachPair(const AttentionOptions& options, Visit visit) {
  for (int64_t b = 0; b < options.batch; ++b) {
    for (int64_t h = 0; h < options.heads; ++h) {
      for (int64_t i = 0; i < options.q_len; ++i) {
        for (int64_t j = 0; j < options.kv_len; ++j) visit(b, h, i, j);
      }
    }
  }
}

std::string ToString(const std::optional<std::vector<int64_t>>& lengths) {
  return lengths ? absl::StrCat("[", absl::StrJoin(*lengths, " "), "]") : "-";
}

std::string ToString(const std::optional<MaskSharing>& mask) {
  if (!mask) return "-";
  return absl::StrCat("[", mask->batch ? "1" : "batch", " ", mask->heads ? "1" : "heads", " ",
                      mask->queries ? "1" : "q_len", " kv_len]");
}

std::string ToString(std::optional<int64_t> bound) { return bound ? absl::StrCat(*bound) : "-"; }

std::optional<MaskSharing> RandomSharing(Random& random) {
  if (!random.Chance(0.4)) return std::nullopt;
  return MaskSharing{.batch = random.Chance(0.5), .heads = random.Chance(0.5), .queries = random.Chance(0.3)};
}

std::vector<int64_t> RandomLengths(int64_t batch, int64_t most, Random& random) {
  std::vector<int64_t> lengths(static_cast<size_t>(batch));
  for (int64_t& length : lengths) length = random.Chance(0.2) ? most : random.Below(most + 1);
  return lengths;
}

}  // namespace

Array4::Array4(std::array<int64_t, 4> dims, float fill)
    : shape(dims), values(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]), fill) {}

float Array4::Shared(int64_t a, int64_t b, int64_t c, int64_t d) const {
  return at(shape[0] == 1 ? 0 : a, shape[1] == 1 ? 0 : b, shape[2] == 1 ? 0 : c, shape[3] == 1 ? 0 : d);
}

int64_t AttentionContent::query_length(int64_t b) const {
  return options.query_lengths ? (*options.query_lengths)[b] : options.q_len;
}

int64_t AttentionContent::key_length(int64_t b) const {
  return options.key_lengths ? (*options.key_lengths)[b] : options.kv_len;
}

int64_t AttentionContent::position(int64_t b, int64_t i) const {
  return options.alignment == Alignment::kBottomRight ? i + key_length(b) - query_length(b) : i;
}

std::string ToString(const AttentionOptions& o) {
  constexpr absl::string_view kLayouts[] = {"TOKENS_HEADS", "HEADS_TOKENS", "PACKED"};
  constexpr absl::string_view kAlignments[] = {"-", "TOP_LEFT", "BOTTOM_RIGHT"};
  return absl::StrCat(
      "seed=", o.seed, " ", Name(o.dtype), " ", kLayouts[static_cast<int>(o.layout)], " batch=", o.batch,
      " heads=", o.heads, " kv_heads=", o.kv_heads, " q_len=", o.q_len, " kv_len=", o.kv_len,
      " qk_head_dim=", o.qk_head_dim, " v_head_dim=", o.v_head_dim, " scale=", o.scale ? absl::StrCat(*o.scale) : "-",
      " logit_softcap=", o.logit_softcap, " causal=", o.causal,
      " alignment=", kAlignments[static_cast<int>(o.alignment)],
      " window=", o.window ? absl::StrCat(ToString(o.window->left), ":", ToString(o.window->right)) : "none",
      " alibi=", o.alibi, " alibi_slopes=[", absl::StrJoin(o.alibi_slopes, " "), "] sinks=[",
      absl::StrJoin(o.sinks, " "), "] query_lengths=", ToString(o.query_lengths),
      " key_lengths=", ToString(o.key_lengths), " keep=", ToString(o.keep), " keep_ratio=", o.keep_ratio,
      " bias=", ToString(o.bias), " ", Name(o.bias_dtype), " hiding_bias_ratio=", o.hiding_bias_ratio,
      " query_gain=", o.query_gain, " lse=", o.return_lse, " weights=", o.return_weights);
}

float Round(DType dtype, float value) {
  std::byte bytes[4];
  StoreElement(bytes, dtype, value);
  return LoadElement(bytes, dtype);
}

AttentionContent RandomContent(const AttentionOptions& options) {
  Random random(options.seed);
  const AttentionOptions& o = options;
  AttentionContent content{.options = options};
  content.query = RandomTensor({o.batch, o.heads, o.q_len, o.qk_head_dim}, o.dtype, o.query_gain, random);
  content.key = RandomTensor({o.batch, o.kv_heads, o.kv_len, o.qk_head_dim}, o.dtype, 1, random);
  content.value = RandomTensor({o.batch, o.kv_heads, o.kv_len, o.v_head_dim}, o.dtype, 1, random);
  if (o.keep) {
    content.keep = Array4(MaskShape(o, *o.keep), 0);
    for (float& entry : content.keep->values) {
      entry = random.Chance(o.keep_ratio) ? static_cast<float>(1 + random.Below(255)) : 0;
    }
  }
  if (o.bias) {
    content.bias = RandomTensor(MaskShape(o, *o.bias), o.bias_dtype, 1, random);
    for (float& entry : content.bias->values) {
      if (random.Chance(o.hiding_bias_ratio)) entry = -kInfinity;
    }
  }
  return content;
}

AttentionOptions RandomOptions(uint64_t seed, DType dtype) {
  Random random(seed);
  AttentionOptions o = {.seed = seed, .dtype = dtype};
  o.layout = static_cast<Layout>(random.Below(3));
  o.batch = random.Pick({1, 1, 2, 3});
  o.kv_heads = random.Pick({1, 1, 2, 3});
  o.heads = o.kv_heads * random.Pick({1, 1, 2, 3, 4});
  o.q_len = random.Pick({0, 1, 1, 1, 2, 5, 16, 17, 33, 65, 130});
  o.kv_len = random.Pick({0, 1, 2, 7, 16, 17, 33, 64, 65, 129, 257, 520});
  o.qk_head_dim = random.Pick({1, 3, 8, 16, 31, 33, 64});
  o.v_head_dim = random.Pick({1, 3, 8, 16, 31, 33, 64});
  if (o.q_len * o.kv_len > 8192) o.batch = o.kv_heads = o.heads = 1;

  if (random.Chance(0.2)) o.scale = static_cast<float>(random.Pick({0, 1, -1, 3})) * 0.25f;
  if (random.Chance(0.25)) o.logit_softcap = random.Chance(0.5) ? 0.5f : 20;
  o.causal = random.Chance(0.4);
  o.alignment = random.Chance(0.5) ? Alignment::kTopLeft : Alignment::kBottomRight;
  if (random.Chance(0.3)) {
    o.window = Window{};
    if (random.Chance(0.7)) o.window->left = random.Pick({0, 1, 4, 40, 200, std::numeric_limits<int64_t>::max()});
    if (random.Chance(0.7)) o.window->right = random.Pick({0, 1, 4, 40, 200, std::numeric_limits<int64_t>::max()});
  }
  o.alibi = random.Chance(0.15);
  if (!o.alibi && random.Chance(0.15)) {
    for (int64_t h = 0; h < o.heads; ++h) o.alibi_slopes.push_back(0.1f * random.Normal());
  }
  if (random.Chance(0.25)) {
    for (int64_t h = 0; h < o.heads; ++h) o.sinks.push_back(random.Chance(0.2) ? -kInfinity : 2 * random.Normal());
  }
  const bool packed = o.layout == Layout::kPacked;
  if (packed || random.Chance(0.3)) o.query_lengths = RandomLengths(o.batch, o.q_len, random);
  if (packed || random.Chance(0.4)) o.key_lengths = RandomLengths(o.batch, o.kv_len, random);
  o.keep = RandomSharing(random);
  o.bias = RandomSharing(random);
  o.bias_dtype = static_cast<DType>(random.Below(3));
  o.keep_ratio = random.Chance(0.2) ? 0.05 : 0.7;
  o.query_gain = random.Chance(0.2) ? 4 : 1;
  o.return_lse = random.Chance(0.7);
  o.return_weights = random.Chance(0.5);
  return o;
}

bool IsVisible(const AttentionContent& content, int64_t b, int64_t h, int64_t i, int64_t j) {
  return IsInRange(content, b, i, j) && IsKept(content, b, h, i, j) &&
         !(content.bias && content.bias->Shared(b, h, i, j) == -kInfinity);
}

void PoisonHidden(AttentionContent& content) {
  const AttentionOptions& o = content.options;
  Array4 key_seen({o.batch, o.kv_heads, o.kv_len, 1}, 0);
  Array4 bias_read = content.bias ? Array4(content.bias->shape, 0) : Array4();
  ForEachPair(o, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (!IsInRange(content, b, i, j) || !IsKept(content, b, h, i, j)) return;
    if (content.bias) {
      const std::array<int64_t, 4>& s = content.bias->shape;
      bias_read.at(s[0] == 1 ? 0 : b, s[1] == 1 ? 0 : h, s[2] == 1 ? 0 : i, j) = 1;
    }
    if (IsVisible(content, b, h, i, j)) key_seen.at(b, h / (o.heads / o.kv_heads), j, 0) = 1;
  });
  for (int64_t b = 0; b < o.batch; ++b) {
    for (int64_t h = 0; h < o.heads; ++h) {
      for (int64_t i = content.query_length(b); i < o.q_len; ++i) {
        for (int64_t d = 0; d < o.qk_head_dim; ++d) content.query.at(b, h, i, d) = kNaN;
      }
    }
    for (int64_t h = 0; h < o.kv_heads; ++h) {
      for (int64_t j = 0; j < o.kv_len; ++j) {
        if (key_seen.at(b, h, j, 0) != 0) continue;
        for (int64_t d = 0; d < o.qk_head_dim; ++d) content.key.at(b, h, j, d) = kNaN;
        for (int64_t d = 0; d < o.v_head_dim; ++d) content.value.at(b, h, j, d) = kNaN;
      }
    }
  }
  for (size_t n = 0; n < bias_read.values.size(); ++n) {
    if (bias_read.values[n] == 0) content.bias->values[n] = kNaN;
  }
}

}  // namespace triad
