#include "core/attention/lane_modifiers.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/attention/lane_product.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

// Which rules apply, beside the scale.
struct StripRules {
  float scale = 1;
  float logit_softcap = 0;
  bool has_alibi = false;
  bool has_bias = false;
  DType bias_dtype = DType::kF32;
  bool has_keep = false;
};
const StripRules kStripRules[] = {
    {.scale = 0.3f},
    {.scale = 0.3f, .logit_softcap = 4},
    {.scale = 0.3f, .has_alibi = true},
    {.scale = 0.3f, .has_bias = true},
    {.has_bias = true, .bias_dtype = DType::kBf16},
    {.has_bias = true, .bias_dtype = DType::kF16, .has_keep = true},
    {.has_keep = true},
    {.scale = 0.3f, .has_keep = true},
    {.scale = 0.3f, .logit_softcap = 4, .has_alibi = true, .has_bias = true, .has_keep = true},
};
constexpr int64_t kStripFirstKey = 24;

// Bias and keep of one row are exactly as long as they may be read: a sanitizer sees what goes further.
TEST(ModifyStripTest, HasTheBytesOfModifyScoresInEveryLane) {
  const StripShape shape = StripShapeOf(DetectInstructionSet());
  for (const StripRules& rules : kStripRules) {
    for (const int64_t keys : {1, 7, 8, 63, 64, 101, 128}) {
      const int64_t width = shape.unit * shape.most_units;
      const int64_t entries = kStripFirstKey + keys;
      const int64_t bias_bytes = ByteSize(rules.bias_dtype);
      std::vector<std::vector<std::byte>> biases, keeps;
      std::vector<RowModifiers> rows;
      for (int64_t lane = 0; lane < width; ++lane) {
        std::vector<std::byte>& bias = biases.emplace_back(static_cast<size_t>(entries * bias_bytes));
        std::vector<std::byte>& keep = keeps.emplace_back(static_cast<size_t>(entries));
        for (int64_t key = 0; key < entries; ++key) {
          const bool hides = (key + lane) % 13 == 0;
          const float added = hides ? -std::numeric_limits<float>::infinity() : static_cast<float>(key % 7 - lane) / 4;
          StoreElement(bias.data() + key * bias_bytes, rules.bias_dtype, added);
          keep[static_cast<size_t>(key)] = std::byte{(key + lane) % 5 != 0};
        }
        RowModifiers row{.scale = rules.scale,
                         .logit_softcap = rules.logit_softcap,
                         .first_distance = 40 + lane,
                         .bias_dtype = rules.bias_dtype};
        // Heads may share a strip; a slope of 0 is one of theirs.
        if (rules.has_alibi) row.alibi_slope = static_cast<float>(lane % 4) / 8;
        if (rules.has_bias) row.bias = bias.data();
        if (rules.has_keep) row.keep = keep.data();
        rows.push_back(row);
      }
      Scratch scratch;
      const ScoreStrip strip{.scores = scratch.Allocate<float>(keys * width), .keys = keys, .width = width};
      for (int64_t i = 0; i < keys * width; ++i) strip.scores[i] = static_cast<float>(i * 37 % 101 - 50) / 9;
      const std::vector<float> original(strip.scores, strip.scores + keys * width);
      ModifyStrip(rows.data(), kStripFirstKey, strip);

      for (int64_t lane = 0; lane < width; ++lane) {
        std::vector<float> scores;
        for (int64_t key = 0; key < keys; ++key) scores.push_back(original[static_cast<size_t>(key * width + lane)]);
        RowModifiers row = rows[static_cast<size_t>(lane)];
        row.first_distance -= kStripFirstKey;
        if (row.bias != nullptr) row.bias += kStripFirstKey * bias_bytes;
        if (row.keep != nullptr) row.keep += kStripFirstKey;
        ModifyScores(row, scores.data(), keys);
        for (int64_t key = 0; key < keys; ++key) {
          ASSERT_EQ(strip.scores[key * width + lane], scores[static_cast<size_t>(key)])
              << "rules " << &rules - kStripRules << ", " << keys << " keys, key " << key << ", lane " << lane;
        }
      }
    }
  }
}

}  // namespace
}  // namespace triad
