// Eight attention problems over one stream, eight hidden states for the server's demo layer over another, and one
// problem answered by a connection of our own.
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

using triad::client::AttendRequest;
using triad::client::AttendResponse;
using triad::client::CallOptions;
using triad::client::Client;
using triad::client::Connection;
using triad::client::ForwardRequest;
using triad::client::TensorView;

constexpr uint64_t kItems = 8;

// What a test of a program that uses the client would write.
class RefusingConnection final : public Connection {
 public:
  absl::StatusOr<AttendResponse> Attend(const AttendRequest&, const CallOptions&) override {
    return absl::FailedPreconditionError("a fake");
  }
};

// How many items were answered well.
template <class Stream>
absl::StatusOr<uint64_t> RunStream(absl::StatusOr<std::unique_ptr<Stream>> stream,
                                   const typename Stream::Request& request) {
  if (!stream.ok()) return stream.status();
  for (uint64_t id = 0; id < kItems; ++id) {
    if (absl::Status status = (*stream)->Send(id, request); !status.ok()) break;
  }
  std::set<uint64_t> answered;
  (*stream)->HalfClose().IgnoreError();
  while (const std::optional<typename Stream::Answer> answer = (*stream)->Next()) {
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
  const absl::StatusOr<uint64_t> answered = RunStream(client->OpenAttendStream(), request);
  if (!answered.ok()) {
    std::fprintf(stderr, "%s\n", answered.status().ToString().c_str());
    return 1;
  }
  const std::vector<float> hidden(2 * 512, 0.5F);
  const ForwardRequest forward{.layer = "demo", .input = TensorView::Float32(hidden, {1, 2, 512})};
  const absl::StatusOr<uint64_t> forwarded = RunStream(client->OpenForwardStream(), forward);
  if (!forwarded.ok()) {
    std::fprintf(stderr, "%s\n", forwarded.status().ToString().c_str());
    return 1;
  }
  std::printf("triad-client " TRIAD_CLIENT_VERSION ": %d and %d of %d answered\n", static_cast<int>(*answered),
              static_cast<int>(*forwarded), static_cast<int>(kItems));
  return *answered == kItems && *forwarded == kItems ? 0 : 1;
}
