#include "client/src/health_check.h"

#include "google/protobuf/unknown_field_set.h"

namespace triad::client {
namespace {

constexpr int kServiceField = 1;
constexpr int kStatusField = 1;

}  // namespace

std::string EncodeHealthRequest(absl::string_view service) {
  google::protobuf::UnknownFieldSet fields;
  if (!service.empty()) fields.AddLengthDelimited(kServiceField, std::string(service));
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

std::optional<Health> DecodeHealthResponse(absl::string_view bytes) {
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  Health health = Health::kUnknown;
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kStatusField) continue;
    if (field.type() != google::protobuf::UnknownField::TYPE_VARINT) return std::nullopt;
    switch (field.varint()) {
      case 1:
        health = Health::kServing;
        break;
      case 2:
        health = Health::kNotServing;
        break;
      default:
        health = Health::kUnknown;
        break;
    }
  }
  return health;
}

}  // namespace triad::client
