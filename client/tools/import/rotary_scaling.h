// The rules by which models stretch rotary embeddings to longer texts, as frequencies.
#pragma once

#include <cstdint>

#include "client/tools/import/config_reader.h"
#include "client/tools/import/layer_text.h"

namespace triad::tools {

// The rotary embedding over `dim` dimensions that `config` describes: rope_theta and rope_scaling, or rope_parameters,
// which newer files have for both. Types default, linear, llama3 and yarn; another is refused by name, because it
// depends on more than the position (dynamic, longrope) or is unknown. Computed in f64. Errors go to `config`.
RotaryText ReadRotary(ConfigReader& config, int64_t dim);

}  // namespace triad::tools
