#include "triad/connection.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace triad::client {
namespace {

absl::Status NotOverridden(absl::string_view function) {
  return absl::UnimplementedError(absl::StrCat("this Connection does not override ", function));
}

}  // namespace

absl::StatusOr<AttendResponse> Connection::Attend(const AttendRequest&, const CallOptions&) {
  return NotOverridden("Attend");
}
void Connection::AttendAsync(const AttendRequest&, const CallOptions&, AttendCallback done) {
  done(NotOverridden("AttendAsync"));
}
absl::StatusOr<std::unique_ptr<AttendStream>> Connection::OpenAttendStream(const StreamOptions&) {
  return NotOverridden("OpenAttendStream");
}

absl::StatusOr<ForwardResponse> Connection::Forward(const ForwardRequest&, const CallOptions&) {
  return NotOverridden("Forward");
}
void Connection::ForwardAsync(const ForwardRequest&, const CallOptions&, ForwardCallback done) {
  done(NotOverridden("ForwardAsync"));
}
absl::StatusOr<std::unique_ptr<ForwardStream>> Connection::OpenForwardStream(const StreamOptions&) {
  return NotOverridden("OpenForwardStream");
}

absl::StatusOr<std::vector<Layer>> Connection::ListLayers(const std::string&, const CallOptions&) {
  return NotOverridden("ListLayers");
}
absl::StatusOr<Layer> Connection::GetLayer(const LayerName&, const CallOptions&) { return NotOverridden("GetLayer"); }
absl::StatusOr<Layer> Connection::LoadLayer(const LayerName&, const CallOptions&) { return NotOverridden("LoadLayer"); }
absl::Status Connection::UnloadLayer(const LayerName&, const CallOptions&) { return NotOverridden("UnloadLayer"); }

absl::StatusOr<ServerInfo> Connection::GetServerInfo(const CallOptions&) { return NotOverridden("GetServerInfo"); }
void Connection::GetServerInfoAsync(const CallOptions&, ServerInfoCallback done) {
  done(NotOverridden("GetServerInfoAsync"));
}
absl::StatusOr<Health> Connection::CheckHealth(const std::string&, const CallOptions&) {
  return NotOverridden("CheckHealth");
}

}  // namespace triad::client
