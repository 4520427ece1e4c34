#include "server/refuse.h"

#include <string>

#include "absl/strings/escaping.h"
#include "core/batching/admission_policy.h"

namespace triad {
namespace {
constexpr size_t kMaxQuotedBytes = 100;
}

absl::Status RefuseField(absl::string_view field, absl::string_view rule, const absl::AlphaNum& was) {
  return absl::InvalidArgumentError(absl::StrCat(field, " must ", rule, "; was ", was));
}

absl::Status DrainingError() { return EarlyEnd(Refusal::kDraining, SchedulerOptions()); }

std::string Quoted(absl::string_view text) {
  if (text.size() <= kMaxQuotedBytes) return absl::StrCat("\"", absl::CHexEscape(text), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)), "...\" (", text.size(), " bytes)");
}

}  // namespace triad
