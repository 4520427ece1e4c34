// Whatever the bytes, the .safetensors reader refuses them or gives tensors that lie inside the file; and their header,
// written, is read back the same.
#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "core/tensor/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto view = triad::SafetensorsView::Parse({reinterpret_cast<const std::byte*>(data), size});
  if (!view.ok()) return 0;

  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  triad::SafetensorsHeader header{.tensors = {}, .metadata = view->metadata()};
  for (const std::string& name : view->names()) {
    TRIAD_CHECK(view->contains(name), "names() lists what there is");
    const auto tensor = view->Find(name);
    if (!tensor.ok()) continue;
    const auto bytes = triad::TensorBytes(tensor->dtype, tensor->shape);
    TRIAD_CHECK(bytes.has_value(), "a tensor that is found has a size");
    TRIAD_CHECK(tensor->data >= begin && tensor->data + *bytes <= begin + size, "a tensor lies inside the file");
    header.tensors[name] = {.dtype = "F32", .shape = tensor->shape, .begin = 0, .end = *bytes};
  }
  const auto json = triad::FormatSafetensorsHeader(header);
  TRIAD_CHECK(json.ok(), "what was read can be written");
  const auto again = triad::ParseSafetensorsHeader(*json);
  TRIAD_CHECK(again.ok() && again->metadata == header.metadata, "writing keeps the metadata");
  TRIAD_CHECK(again->tensors.size() == header.tensors.size(), "writing keeps the tensors");
  return 0;
}
