// grpc.health.v1.Health.Check without its generated code: its messages have one field each, and a library that brought
// its own copy of health.proto would clash with a program's.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "triad/server_info.h"

namespace triad::client {

inline constexpr char kHealthCheckMethod[] = "/grpc.health.v1.Health/Check";

// HealthCheckRequest {string service = 1}, serialised.
std::string EncodeHealthRequest(absl::string_view service);

// HealthCheckResponse {ServingStatus status = 1}. nullopt: not such a message.
std::optional<Health> DecodeHealthResponse(absl::string_view bytes);

}  // namespace triad::client
