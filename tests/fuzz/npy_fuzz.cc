// Whatever the bytes, the .npy reader refuses them or gives a tensor; and that tensor, written, is read back the same.
#include <cstdint>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "core/tensor/npy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool accept_all : {false, true}) {
    const triad::NpyReadOptions options = {
        .accept_void_as_bf16 = accept_all, .accept_uint8_as_bool = false, .convert_to_f32 = accept_all};
    const auto tensor = triad::ParseNpy({reinterpret_cast<const std::byte*>(data), size}, options);
    if (!tensor.ok()) continue;

    std::string written = triad::NpyPrefix(tensor->view());
    written.append(reinterpret_cast<const char*>(tensor->data()), static_cast<size_t>(tensor->byte_size()));
    const auto again = triad::ParseNpy({reinterpret_cast<const std::byte*>(written.data()), written.size()}, options);
    TRIAD_CHECK(again.ok(), "what is written can be read");
    TRIAD_CHECK(again->dtype() == tensor->dtype() && again->shape() == tensor->shape(), "writing keeps type and shape");
    TRIAD_CHECK(std::memcmp(again->data(), tensor->data(), static_cast<size_t>(tensor->byte_size())) == 0,
                "writing keeps the bytes");
  }
  return 0;
}
