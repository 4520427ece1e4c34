// The bytes of .safetensors files, made in memory: good ones from values, and bad ones by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/safetensors_header.h"
#include "core/tensor/tensor.h"

namespace triad {

// The eight bytes of the header's length, the header, the data.
inline std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return absl::StrCat(file, header, data);
}

inline absl::StatusOr<SafetensorsView> ParseBytes(const std::string& file) {
  return SafetensorsView::Parse({reinterpret_cast<const std::byte*>(file.data()), file.size()});
}

// Collects tensors; Bytes() is the file that holds them, in the order of their names.
class WeightBytes {
 public:
  // Rounds `values` to `dtype`; they fill `shape`.
  void Put(const std::string& name, DType dtype, Shape shape, const std::vector<float>& values) {
    std::string bytes(values.size() * static_cast<size_t>(ByteSize(dtype)), '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      StoreElement(bytes.data() + i * static_cast<size_t>(ByteSize(dtype)), dtype, values[i]);
    }
    static const std::map<DType, std::string> names = {
        {DType::kF32, "F32"}, {DType::kBf16, "BF16"}, {DType::kF16, "F16"}};
    PutBytes(name, names.at(dtype), std::move(shape), std::move(bytes));
  }

  // A tensor of any type; `dtype` is the format's name for it.
  void PutBytes(const std::string& name, const std::string& dtype, Shape shape, std::string bytes) {
    tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
  }

  void Erase(const std::string& name) { tensors_.erase(name); }

  std::string Bytes() const {
    SafetensorsHeader header;
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      const auto begin = static_cast<int64_t>(data.size());
      data += tensor.bytes;
      header.tensors[name] = {
          .dtype = tensor.dtype, .shape = tensor.shape, .begin = begin, .end = static_cast<int64_t>(data.size())};
    }
    return SafetensorsBytes(FormatSafetensorsHeader(header).value(), data);
  }

 private:
  struct Named {
    std::string dtype;
    Shape shape;
    std::string bytes;
  };
  std::map<std::string, Named> tensors_;
};

}  // namespace triad
