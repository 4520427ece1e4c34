// Whatever the text, it is refused in words or gives a spec that keeps every rule.
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/layer/layer_spec_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto spec = triad::ParseLayerSpec(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!spec.ok()) {
    TRIAD_CHECK(spec.status().code() == absl::StatusCode::kInvalidArgument, "a text is legal or INVALID_ARGUMENT");
    TRIAD_CHECK(!spec.status().message().empty(), "a refusal says why");
    return 0;
  }
  TRIAD_CHECK(triad::ValidateLayerSpec(*spec).ok(), "what was parsed is valid");
  TRIAD_CHECK(spec->query_width() <= triad::kMaxLayerWidth && spec->key_width() <= spec->query_width(),
              "widths are bounded");
  TRIAD_CHECK(spec->rotary.dim >= 0 && spec->rotary.dim <= spec->qk_head_dim, "rotary pairs lie in the head");
  TRIAD_CHECK(spec->alibi_slopes.empty() || static_cast<int64_t>(spec->alibi_slopes.size()) == spec->heads,
              "one slope for each head");
  return 0;
}
