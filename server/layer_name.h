// What layers are called. A name is also a path below the layer directory, so it must not be able to lead out of it,
// nor to what is still being prepared there, in folders whose names begin with a dot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace triad {

inline constexpr size_t kMaxLayerNameBytes = 200;
inline constexpr int kMaxLayerNameSegments = 8;

// A name is segments of A-Z a-z 0-9 _ . - joined by "/", such as "minilm/0"; no segment is empty or begins with a
// dot.
// INVALID_ARGUMENT otherwise; `field` names it.
absl::Status CheckLayerName(absl::string_view field, absl::string_view name);

// INVALID_ARGUMENT unless unset or > 0.
absl::Status CheckLayerVersion(absl::string_view field, std::optional<int64_t> version);

// The version that a folder's name spells, in its one spelling: digits without sign or leading zero, > 0. nullopt
// otherwise.
std::optional<int64_t> ParseLayerVersion(absl::string_view folder);

// A layer as flags name it.
struct LayerChoice {
  std::string name;
  std::optional<int64_t> version;  // unset: the highest
};

// name[@version]. INVALID_ARGUMENT as above.
absl::StatusOr<LayerChoice> ParseLayerChoice(absl::string_view field, absl::string_view text);

}  // namespace triad
