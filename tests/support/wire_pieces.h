// A message's bytes as a transport may deliver them, and whether what reads them so agrees with the generated parser.
#pragma once

#include <string>

#include "server/read_attend.h"
#include "tests/support/cut_pieces.h"

namespace triad {

inline CutPieces CutWire(const std::string& wire, size_t piece_bytes) {
  return CutPieces(reinterpret_cast<const std::byte*>(wire.data()), static_cast<int64_t>(wire.size()),
                   [&] { return static_cast<int64_t>(piece_bytes); });
}

inline std::string ToString(const Pieces& pieces) {
  std::string bytes(static_cast<size_t>(pieces.size()), '\0');
  pieces.CopyTo(0, pieces.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

// Whether ReadAttend takes `wire` if, and only if, the generated parser does, and for the same message.
inline bool ReadsAsParsed(const std::string& wire, size_t piece_bytes) {
  const CutPieces pieces = CutWire(wire, piece_bytes);
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
