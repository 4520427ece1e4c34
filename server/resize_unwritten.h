// Room in a string for bytes that are about to be written, and so need not be written first.
#pragma once

#include <cstddef>
#include <string>

namespace triad {

// Makes `text`, which is empty, `size` bytes long, whatever they hold. Nobody may read one before it has been written:
// memory may hold what another client sent. Throws std::bad_alloc or std::length_error, and leaves `text` as it was.
void ResizeUnwritten(std::string& text, size_t size);

}  // namespace triad
