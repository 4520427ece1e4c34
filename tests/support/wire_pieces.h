// A message's bytes as a transport may deliver them, and whether what reads them so agrees with the generated parser.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "server/read_attend.h"

namespace triad {

// Owns a copy of some bytes in pieces of `piece_bytes`, each in memory of its own.
class WirePieces {
 public:
  WirePieces(const std::string& wire, size_t piece_bytes) {
    for (size_t begin = 0; begin < wire.size(); begin += piece_bytes) {
      const size_t count = std::min(piece_bytes, wire.size() - begin);
      memory_.push_back(std::make_unique<std::byte[]>(count));
      std::memcpy(memory_.back().get(), wire.data() + begin, count);
      pieces_.Add(memory_.back().get(), static_cast<int64_t>(count));
    }
  }

  const Pieces& get() const { return pieces_; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  Pieces pieces_;
};

inline std::string ToString(const Pieces& pieces) {
  std::string bytes(static_cast<size_t>(pieces.size()), '\0');
  pieces.CopyTo(0, pieces.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

// Whether ReadAttend takes `wire` if, and only if, the generated parser does, and for the same message.
inline bool ReadsAsParsed(const std::string& wire, size_t piece_bytes) {
  const WirePieces pieces(wire, piece_bytes);
  v1::AttendRequest parsed;
  v1::AttendRequest read;
  KeyValuePieces apart;
  const bool is_message = parsed.ParseFromString(wire);
  if (ReadAttend(pieces.get(), read, apart) != is_message) return false;
  if (!is_message) return true;
  if (apart.key.size() > 0) read.mutable_key()->set_data(ToString(apart.key));
  if (apart.value.size() > 0) read.mutable_value()->set_data(ToString(apart.value));
  return read.SerializeAsString() == parsed.SerializeAsString();
}

}  // namespace triad
