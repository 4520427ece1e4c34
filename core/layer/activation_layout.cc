#include "core/layer/activation_layout.h"

#include "core/base/dims.h"
#include "core/layer/projection.h"

namespace triad {
namespace {

// Rows a power of two apart share a few cache sets; one cache line more and they do not.
constexpr int64_t kExtraElements = 16;

}  // namespace

ActivationLayout LayoutOf(const LayerSpec& spec) {
  ActivationLayout layout;
  layout.qk_head_stride = spec.rotary.dim > 0 ? RoundUp(spec.qk_head_dim, 2) : spec.qk_head_dim;
  const int64_t query_columns = spec.heads * layout.qk_head_stride;
  const int64_t key_columns = spec.kv_heads * layout.qk_head_stride;
  layout.key_begin = spec.is_cross() ? 0 : query_columns;
  layout.value_begin = layout.key_begin + key_columns;
  const int64_t keys_and_values = key_columns + spec.value_width();
  layout.query_width = query_columns + (spec.is_cross() ? 0 : keys_and_values);
  layout.context_width = spec.is_cross() ? keys_and_values : 0;
  layout.query_stride = RoundUp(layout.query_width, kExtraElements) + kExtraElements;
  layout.context_stride = spec.is_cross() ? RoundUp(layout.context_width, kExtraElements) + kExtraElements : 0;
  layout.mixed_stride = RoundUp(spec.mixed_width(), kOperandStep);
  return layout;
}

}  // namespace triad
