// The families of models whose attention can be imported: how their tensors are called, and what their config.json
// says.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/tools/import/config_reader.h"
#include "client/tools/import/layer_text.h"

namespace triad::tools {

// Whether a projection has a bias. A bias that the rule does not expect is refused, and so is one that is missing.
enum class BiasRule { kAlways, kNever, kByConfig };

// "<name>.weight" and "<name>.bias", below the layer.
struct ProjectionNaming {
  absl::string_view name;  // empty: there is no such projection
  BiasRule bias = BiasRule::kAlways;
};

// Tensors are called <prefix><layers><index>.<projection>.weight, as in
// "bert.encoder.layer.3.attention.self.query.weight".
struct Naming {
  absl::Span<const absl::string_view> prefixes;  // some savers write one, some another
  absl::string_view layers;
  ProjectionNaming query, key, value;
  ProjectionNaming fused;  // instead of the three
  ProjectionNaming output;
  bool in_out = false;  // weights lie [inputs, outputs]
  // Whatever else lies below these is refused: a layer that left it out would answer wrongly.
  absl::Span<const absl::string_view> attention;
  // Except for these, which are not part of attention, or follow from config.json.
  absl::Span<const absl::string_view> ignored;
};

struct Family {
  absl::string_view model_type;  // as config.json has it
  const Naming* naming;
  absl::string_view layer_count_field;
  // Fills in all but the tensors and the compute type. Errors go to `config`.
  LayerText (*read)(ConfigReader& config, int64_t layer);
  // The field that decides about BiasRule::kByConfig, and what it is when unset.
  absl::string_view bias_field = {};
  bool bias_by_default = false;
};

// The family that `config` names in model_type. INVALID_ARGUMENT, with those that are known.
absl::StatusOr<const Family*> FindFamily(ConfigReader& config);

}  // namespace triad::tools
