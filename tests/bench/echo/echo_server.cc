#include "tests/bench/echo/echo_server.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <signal.h>
#include <unistd.h>

#include "server/server_options.h"
#include "server/transport.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad {
namespace {

class EchoService final : public v1::AttentionService::WithRawCallbackMethod_Attend<v1::AttentionService::Service> {
 public:
  explicit EchoService(const std::string& reply) : slice_(reply), reply_(&slice_, /*nslices=*/1) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    *response = reply_;  // counts references; nothing is copied
    // A message that was lost on the way in is an invalid buffer.
    reactor->Finish(const_cast<grpc::ByteBuffer*>(request)->Valid()
                        ? grpc::Status::OK
                        : grpc::Status(grpc::StatusCode::INTERNAL, "no message"));
    return reactor;
  }

 private:
  const grpc::Slice slice_;
  const grpc::ByteBuffer reply_;
};

}  // namespace

absl::Status ServeEcho(const std::string& address, const std::string& reply) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread: only sigwait sees it
  EchoService service(reply);
  ServerOptions options;
  options.listen = {address};
  const auto transport = Transport::Start(options, {{"triad.v1.AttentionService", service}});
  if (!transport.ok()) return transport.status();
  int received = 0;
  sigwait(&signals, &received);
  _exit(0);  // gRPC might wait some 10 s for a client that keeps its channel open
}

}  // namespace triad
