// From an AttendRequest's bytes to the message, but for what the kernels read where it lies.
#pragma once

#include "server/key_value_pieces.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// Parses `wire`. Of what was written as protobuf writes it, the data of keys and values stays there: it is empty in
// `message`, and `pieces` says where it lies. All else is the generated parser's. False: `wire` is no AttendRequest.
bool ReadAttend(const Pieces& wire, v1::AttendRequest& message, KeyValuePieces& pieces);

// The whole message, by the generated parser.
bool ParseAttend(const Pieces& wire, v1::AttendRequest& message);

}  // namespace triad
