#include "tests/support/server_raw_call.h"

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <utility>
#include <vector>

#include "tests/support/server_requests.h"

namespace triad {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& message) {
  const grpc::Slice slice(message);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

}  // namespace

RawCall::RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method)
    : channel_(std::move(channel)), stub_(channel_) {
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  call_ = stub_.PrepareCall(&context_, method, &queue_);
  call_->StartCall(this);
  Await();
}

RawCall::~RawCall() {
  if (!is_finished_) {
    Cancel();
    Finish();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RawCall::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool RawCall::Write(const std::string& message) {
  call_->Write(ToBuffer(message), this);
  return Await();
}

bool RawCall::WritesDone() {
  call_->WritesDone(this);
  return Await();
}

std::optional<std::string> RawCall::Read() {
  grpc::ByteBuffer buffer;
  call_->Read(&buffer, this);
  if (!Await()) return std::nullopt;
  return ToBytes(buffer);
}

grpc::Status RawCall::Finish() {
  grpc::Status status;
  call_->Finish(&status, this);
  Await();
  is_finished_ = true;
  return status;
}

RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& message) {
  RawCall call(channel, method);
  RawReply reply;
  if (call.Write(message) && call.WritesDone()) reply.message = call.Read().value_or("");
  reply.status = call.Finish();
  return reply;
}

grpc::Status CallSmallAttend(const std::shared_ptr<grpc::Channel>& channel) {
  return CallRaw(channel, kAttendMethod, OneItemRequest().SerializeAsString()).status;
}

}  // namespace triad
