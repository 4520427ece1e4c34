// How the rows between a layer's products lie: what they hold at which column, and how far apart they are. In elements.
//
//   self-attention    query rows  [query heads | key heads | value heads]      mixed rows  [heads of the attention]
//   cross-attention   query rows  [query heads]    context rows  [key heads | value heads]    mixed rows likewise
#pragma once

#include <cstdint>

#include "core/layer/layer_spec.h"

namespace triad {

struct ActivationLayout {
  int64_t qk_head_stride = 0;  // of query and key heads: qk_head_dim, or one more where rotary pairs need it even
  int64_t key_begin = 0;       // column of the first key head in its row
  int64_t value_begin = 0;     // column of the first value head in its row
  int64_t query_width = 0;     // columns of a query row, of all three in self-attention
  int64_t context_width = 0;   // columns of a context row; 0: self-attention
  int64_t query_stride = 0;
  int64_t context_stride = 0;
  int64_t mixed_stride = 0;  // columns past the heads' are zero: they meet weights of zero

  // Columns of query and key heads: those that a rotary embedding may turn.
  int64_t turned_columns() const { return value_begin; }
};

ActivationLayout LayoutOf(const LayerSpec& spec);

}  // namespace triad
