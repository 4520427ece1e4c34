// A gRPC server in this process whose methods a test writes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "triad/client.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad::client {

using ServerStream = grpc::ServerReaderWriter<v1::AttendStreamResponse, v1::AttendStreamRequest>;

class FakeService final : public v1::AttentionService::Service {
 public:
  grpc::Status Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                      v1::AttendResponse* response) override {
    return attend(*context, *request, *response);
  }
  grpc::Status AttendStream(grpc::ServerContext*, ServerStream* items) override { return attend_stream(*items); }
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo* response) override {
    *response = info;
    return grpc::Status::OK;
  }

  // Set before the first call. By default the values come back as the output.
  std::function<grpc::Status(grpc::ServerContext&, const v1::AttendRequest&, v1::AttendResponse&)> attend =
      [](auto&, const v1::AttendRequest& request, v1::AttendResponse& response) {
        *response.mutable_output() = request.value();
        return grpc::Status::OK;
      };
  std::function<grpc::Status(ServerStream&)> attend_stream;
  v1::ServerInfo info;
};

// Listens from construction to destruction, on a loopback port of the system's choice.
class FakeServer {
 public:
  FakeServer() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() { server_->Shutdown(); }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }
  grpc::Server& server() { return *server_; }
  Client Connect(ClientOptions options = {}) const {
    options.target = target();
    return *Client::Create(options);
  }

  FakeService service;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace triad::client
