#include "server/layer_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/refuse.h"

namespace triad {
namespace {

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

bool IsSegment(absl::string_view segment) {
  return !segment.empty() && segment[0] != '.' && std::all_of(segment.begin(), segment.end(), IsNameByte);
}

}  // namespace

absl::Status CheckLayerName(absl::string_view field, absl::string_view name) {
  if (name.empty()) return RefuseField(field, "be the name of a layer", "unset");
  if (name.size() > kMaxLayerNameBytes) {
    return RefuseField(field, absl::StrCat("have at most ", kMaxLayerNameBytes, " bytes"), name.size());
  }
  const std::vector<absl::string_view> segments = absl::StrSplit(name, '/');
  if (segments.size() > kMaxLayerNameSegments) {
    return RefuseField(field, absl::StrCat("have at most ", kMaxLayerNameSegments, " segments"), segments.size());
  }
  if (std::all_of(segments.begin(), segments.end(), IsSegment)) return absl::OkStatus();
  return RefuseField(field, "be segments of A-Z a-z 0-9 _ . - joined by /, none of them empty or beginning with a dot",
                     Quoted(name));
}

absl::Status CheckLayerVersion(absl::string_view field, std::optional<int64_t> version) {
  if (!version || *version > 0) return absl::OkStatus();
  return RefuseField(field, "be > 0, or unset for the highest", *version);
}

std::optional<int64_t> ParseLayerVersion(absl::string_view folder) {
  int64_t version = 0;
  // The number spelt again is the folder's name: no sign, no space, no leading zero.
  if (!absl::SimpleAtoi(folder, &version) || version <= 0 || absl::StrCat(version) != folder) return std::nullopt;
  return version;
}

absl::StatusOr<LayerChoice> ParseLayerChoice(absl::string_view field, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('@', 1));
  LayerChoice choice{.name = std::string(parts.first)};
  if (absl::Status status = CheckLayerName(field, choice.name); !status.ok()) return status;
  if (parts.first.size() == text.size()) return choice;
  choice.version = ParseLayerVersion(parts.second);
  if (!choice.version) return RefuseField(field, "name a version > 0, without leading zeros, after @", Quoted(text));
  return choice;
}

}  // namespace triad
