#include "server/attend_stream.h"

#include <memory>
#include <utility>

#include "server/item_stream.h"

namespace triad {
namespace {

class AttendStream final : public ItemStream<v1::AttendStreamRequest, v1::AttendStreamResponse> {
 public:
  AttendStream(grpc::CallbackServerContext& rpc, ServingContext& context)
      : ItemStream(rpc, Method::kAttendStream, context) {}

 private:
  absl::StatusOr<std::unique_ptr<Task>> MakeTask(Arrival arrival) override {
    AttendJob job{.request = arrival.frame.request(),
                  .response = *arrival.reply.mutable_response(),
                  .received = arrival.received,
                  .deadline = arrival.deadline,
                  .done = [this, done = std::move(arrival.done)](absl::Status status, const ComputedRequest& effort) {
                    if (status.ok()) context_.metrics.OnComputed(effort);
                    done(std::move(status));
                  }};
    return AttendTask::Create(std::move(job), context_.kernels, context_.clock);
  }
};

}  // namespace

grpc::ServerBidiReactor<v1::AttendStreamRequest, v1::AttendStreamResponse>* StartAttendStream(
    grpc::CallbackServerContext& rpc, ServingContext& context) {
  const auto stream = std::make_shared<AttendStream>(rpc, context);
  stream->Open();
  return stream.get();  // keeps itself until gRPC is done with it
}

}  // namespace triad
