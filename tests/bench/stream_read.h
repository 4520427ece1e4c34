// The machine's own limit for work that reads everything once: memory, read and added up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triad {

// Reads [data, data + bytes) once with the widest vectors, as `streams` parts side by side (1: one plain sequential
// read). `bytes` is a multiple of 64 * streams, streams 1, 2, 4 or 8; data is aligned to 4.
void ReadStreams(const std::byte* data, int64_t bytes, int streams);

}  // namespace triad
