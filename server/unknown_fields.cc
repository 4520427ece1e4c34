#include "server/unknown_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace triad {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// "query" inside "request" is "request.query".
std::string Join(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

absl::Status Refuse(const std::string& path, const std::string& what) {
  return absl::UnimplementedError(absl::StrCat(path.empty() ? "the request" : path, " has unknown ", what,
                                               "; this server is older than the option it carries"));
}

absl::Status CheckEnum(const std::string& path, const FieldDescriptor& field, int value) {
  // proto3 enums are open: an unknown number is kept in the field itself.
  if (field.enum_type()->FindValueByNumber(value) != nullptr) return absl::OkStatus();
  return Refuse(Join(path, std::string(field.name())),
                absl::StrCat("value ", value, " of ", std::string(field.enum_type()->full_name())));
}

absl::Status Check(const Message& message, const std::string& path);

absl::Status CheckField(const Message& message, const FieldDescriptor& field, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field.is_repeated()) {
    if (!is_message) return CheckEnum(path, field, reflection.GetEnumValue(message, &field));
    if (!reflection.HasField(message, &field)) return absl::OkStatus();
    return Check(reflection.GetMessage(message, &field), Join(path, std::string(field.name())));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    absl::Status status = is_message ? Check(reflection.GetRepeatedMessage(message, &field, i),
                                             absl::StrCat(Join(path, std::string(field.name())), "[", i, "]"))
                                     : CheckEnum(path, field, reflection.GetRepeatedEnumValue(message, &field, i));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Depth is bounded by the contract's own nesting: no message of it contains itself.
absl::Status Check(const Message& message, const std::string& path) {
  const Descriptor& type = *message.GetDescriptor();
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (!unknown.empty()) {
    return Refuse(path, absl::StrCat("field ", unknown.field(0).number(), " of ", std::string(type.full_name())));
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE && field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM)
      continue;
    if (absl::Status status = CheckField(message, field, path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNothingUnknown(const Message& message) { return Check(message, /*path=*/""); }

}  // namespace triad
