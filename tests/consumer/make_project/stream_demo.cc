// Eight attention problems over one stream, and one answered by a connection of our own.
//
//   stream_demo target
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "triad/allocator.h"
#include "triad/client.h"
#include "triad/version.h"

namespace {

using triad::client::AttendAnswer;
using triad::client::AttendCallback;
using triad::client::AttendRequest;
using triad::client::AttendResponse;
using triad::client::AttendStream;
using triad::client::CallOptions;
using triad::client::Client;
using triad::client::Connection;
using triad::client::Health;
using triad::client::ServerInfo;
using triad::client::ServerInfoCallback;
using triad::client::StreamOptions;
using triad::client::TensorView;

constexpr uint64_t kItems = 8;

// What a test of a program that uses the client would write.
class RefusingConnection final : public Connection {
 public:
  absl::StatusOr<AttendResponse> Attend(const AttendRequest&, const CallOptions&) override { return Refusal(); }
  void AttendAsync(const AttendRequest&, const CallOptions&, AttendCallback done) override { done(Refusal()); }
  absl::StatusOr<std::unique_ptr<AttendStream>> OpenAttendStream(const StreamOptions&) override { return Refusal(); }
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions&) override { return Refusal(); }
  void GetServerInfoAsync(const CallOptions&, ServerInfoCallback done) override { done(Refusal()); }
  absl::StatusOr<Health> CheckHealth(const std::string&, const CallOptions&) override { return Refusal(); }

 private:
  static absl::Status Refusal() { return absl::FailedPreconditionError("a fake"); }
};

// How many items were answered well.
absl::StatusOr<uint64_t> RunStream(const Client& client, const AttendRequest& request) {
  absl::StatusOr<std::unique_ptr<AttendStream>> stream = client.OpenAttendStream();
  if (!stream.ok()) return stream.status();
  for (uint64_t id = 0; id < kItems; ++id) {
    if (absl::Status status = (*stream)->Send(id, request); !status.ok()) break;
  }
  std::set<uint64_t> answered;
  (*stream)->HalfClose().IgnoreError();
  while (const std::optional<AttendAnswer> answer = (*stream)->Next()) {
    if (answer->response.ok()) answered.insert(answer->request_id);
  }
  if (absl::Status status = (*stream)->Finish(); !status.ok()) return status;
  return answered.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (!triad::client::TuneAllocatorForLargeMessages().ok()) return 1;
  const std::vector<float> values(2 * 3 * 4, 0.5F);
  const TensorView tensor = TensorView::Float32(values, {1, 2, 3, 4});
  AttendRequest request;
  request.query = request.key = request.value = tensor;

  const Client fake(std::make_shared<RefusingConnection>());
  if (fake.Attend(request).status() != absl::FailedPreconditionError("a fake")) return 1;

  const absl::StatusOr<Client> client = Client::Create({.target = argv[1]});
  if (!client.ok()) return 1;
  const absl::StatusOr<uint64_t> answered = RunStream(*client, request);
  if (!answered.ok()) {
    std::fprintf(stderr, "%s\n", answered.status().ToString().c_str());
    return 1;
  }
  std::printf("triad-client " TRIAD_CLIENT_VERSION ": %d of %d answered\n", static_cast<int>(*answered),
              static_cast<int>(kItems));
  return *answered == kItems ? 0 : 1;
}
