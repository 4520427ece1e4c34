#include "server/resize_unwritten.h"

namespace triad {

// A source of its own, because it takes C++23. A library without that function writes zeros.
void ResizeUnwritten(std::string& text, size_t size) {
#ifdef __cpp_lib_string_resize_and_overwrite
  // Not what it is called with: libstdc++ 12 rounds that up.
  text.resize_and_overwrite(size, [size](char*, size_t) { return size; });
#else
  text.resize(size);
#endif
}

}  // namespace triad
