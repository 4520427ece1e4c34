// The machine's own limit for work that reads everything once: memory, read and added up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triad {

// Bytes/s of reading [data, data + bytes) once with the widest vectors as `streams` parts side by side (1: one plain
// sequential read). One thread. `bytes` is a multiple of 64 * streams; data is aligned to 4.
double MeasureStreamRead(const std::byte* data, int64_t bytes, int streams);

}  // namespace triad
