// A gRPC server in this process whose methods a test writes.
#pragma once

#include <functional>
#include <map>
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
#include "triad/v1/layer.grpc.pb.h"

namespace triad::client {

using AttendItems = grpc::ServerReaderWriter<v1::AttendStreamResponse, v1::AttendStreamRequest>;
using ForwardItems = grpc::ServerReaderWriter<v1::ForwardStreamResponse, v1::ForwardStreamRequest>;

class FakeService final : public v1::AttentionService::Service {
 public:
  grpc::Status Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                      v1::AttendResponse* response) override {
    return attend(*context, *request, *response);
  }
  grpc::Status AttendStream(grpc::ServerContext*, AttendItems* items) override { return attend_stream(*items); }
  grpc::Status Forward(grpc::ServerContext* context, const v1::ForwardRequest* request,
                       v1::ForwardResponse* response) override {
    return forward(*context, *request, *response);
  }
  grpc::Status ForwardStream(grpc::ServerContext*, ForwardItems* items) override { return forward_stream(*items); }
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo* response) override {
    *response = info;
    return grpc::Status::OK;
  }

  // Set before the first call. By default the values, or the hidden states, come back as the output.
  std::function<grpc::Status(grpc::ServerContext&, const v1::AttendRequest&, v1::AttendResponse&)> attend =
      [](auto&, const v1::AttendRequest& request, v1::AttendResponse& response) {
        *response.mutable_output() = request.value();
        return grpc::Status::OK;
      };
  std::function<grpc::Status(AttendItems&)> attend_stream;
  std::function<grpc::Status(grpc::ServerContext&, const v1::ForwardRequest&, v1::ForwardResponse&)> forward =
      [](auto&, const v1::ForwardRequest& request, v1::ForwardResponse& response) {
        *response.mutable_output() = request.input();
        return grpc::Status::OK;
      };
  std::function<grpc::Status(ForwardItems&)> forward_stream;
  v1::ServerInfo info;
};

// Holds what LoadLayer was asked for: layers of version 1 unless one is named.
class FakeLayers final : public v1::LayerService::Service {
 public:
  grpc::Status ListLayers(grpc::ServerContext*, const v1::ListLayersRequest* request,
                          v1::ListLayersResponse* response) override {
    for (const auto& [name, layer] : layers_) {
      if (request->name().empty() || request->name() == name) *response->add_layers() = layer;
    }
    return grpc::Status::OK;
  }
  grpc::Status GetLayer(grpc::ServerContext*, const v1::GetLayerRequest* request, v1::Layer* response) override {
    const auto found = layers_.find(request->name());
    const bool is_there =
        found != layers_.end() && (!request->has_version() || request->version() == found->second.version());
    if (!is_there) return {grpc::StatusCode::NOT_FOUND, "no such layer"};
    *response = found->second;
    return grpc::Status::OK;
  }
  grpc::Status LoadLayer(grpc::ServerContext*, const v1::LoadLayerRequest* request,
                         v1::LoadLayerResponse* response) override {
    v1::Layer& layer = layers_[request->name()];
    layer.set_name(request->name());
    layer.set_version(request->has_version() ? request->version() : 1);
    *response->mutable_layer() = layer;
    return grpc::Status::OK;
  }
  grpc::Status UnloadLayer(grpc::ServerContext*, const v1::UnloadLayerRequest* request,
                           v1::UnloadLayerResponse*) override {
    if (!request->has_version()) return {grpc::StatusCode::INVALID_ARGUMENT, "version must be named"};
    if (layers_.erase(request->name()) == 0) return {grpc::StatusCode::NOT_FOUND, "no such layer"};
    return grpc::Status::OK;
  }

 private:
  std::map<std::string, v1::Layer> layers_;  // by name; tests call one after another
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
    builder.RegisterService(&layers_);
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
  FakeLayers layers_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace triad::client
