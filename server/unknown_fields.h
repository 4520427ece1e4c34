// Finds what a newer client may have set and this server does not know.
#pragma once

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace triad {

// UNIMPLEMENTED naming the first field number or enum value, anywhere inside `message`, that its type does not declare;
// OK when there is none. An option that an older server does not know must not turn into a wrong answer.
//   "query has unknown field 9 of triad.v1.Tensor; this server is older than the option it carries"
absl::Status CheckNothingUnknown(const google::protobuf::Message& message);

}  // namespace triad
