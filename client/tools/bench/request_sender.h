// How a request goes out and its answer comes back: a call of its own, or an item of a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/tools/bench/request_builder.h"
#include "client/tools/bench/workload.h"
#include "triad/attend.h"
#include "triad/client.h"
#include "triad/options.h"
#include "triad/tensor.h"

namespace triad::tools {

// What an answer of either kind holds that the tool looks at.
struct Reply {
  absl::Status status;  // OK, or why the rest is empty
  client::Timings timings = {};
  client::Tensor output = {};
  int64_t layer_version = 0;  // that answered a Forward
};

using ReplyCallback = std::function<void(Reply)>;

class RequestSender {
 public:
  virtual ~RequestSender() = default;

  // Starts a request. `done` is called once, on another thread, never from within Send; it must not block. When Send
  // returns an error, nothing was sent and `done` is not called. Any thread may call this; on a stream it may block
  // while the transport is full.
  virtual absl::Status Send(const PlannedRequest& request, ReplyCallback done) = 0;
};

struct SenderOptions {
  absl::Duration timeout = client::kDefaultTimeout;  // of each request
  std::stop_token cancel = {};                       // a stop answers all that is in flight with CANCELLED
};

// Each request a unary call. `builder` outlives the sender.
std::unique_ptr<RequestSender> MakeUnarySender(client::Client client, const RequestBuilder& builder,
                                               const SenderOptions& options);

// Requests are items of one stream, opened here. `builder` outlives the sender. The destructor waits for the answers of
// what was sent.
absl::StatusOr<std::unique_ptr<RequestSender>> MakeStreamSender(const client::Client& client,
                                                                const RequestBuilder& builder,
                                                                const SenderOptions& options);

}  // namespace triad::tools
