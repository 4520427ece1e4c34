// The keys and values of a large request, where the transport put them.
#pragma once

#include <cstdint>
#include <memory>

#include "core/tensor/pieces.h"

namespace triad {

struct KeyValuePieces {
  Pieces key;                          // its data; empty: it is in the message
  Pieces value;                        // likewise
  std::shared_ptr<const void> memory;  // owns the bytes
  int64_t held_bytes = 0;              // by `memory`
};

}  // namespace triad
