// Calls in plain bytes, for what no generated stub would send.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>

namespace triad {

inline constexpr char kAttendMethod[] = "/triad.v1.AttentionService/Attend";
inline constexpr char kAttendStreamMethod[] = "/triad.v1.AttentionService/AttendStream";
inline constexpr char kForwardMethod[] = "/triad.v1.AttentionService/Forward";
inline constexpr char kForwardStreamMethod[] = "/triad.v1.AttentionService/ForwardStream";

// One call of any kind, driven step by step; each step blocks. Ends by itself after a minute, so that a broken server
// fails a test instead of hanging it. Not thread-safe.
class RawCall {
 public:
  // Opens the call.
  RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method);
  // Cancels what is still open.
  ~RawCall();

  // False: the call is over.
  bool Write(const std::string& message);
  bool WritesDone();
  // nullopt: there is no further message.
  std::optional<std::string> Read();
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }
  grpc::ClientContext& context() { return context_; }

 private:
  bool Await();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::shared_ptr<grpc::Channel> channel_;  // the stub borrows it
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool is_finished_ = false;
};

struct RawReply {
  grpc::Status status;
  std::string message;  // empty unless OK
};

// One message in, one out.
RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& message);

// A small Attend that any server answers: what the next good request gets.
grpc::Status CallSmallAttend(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace triad
