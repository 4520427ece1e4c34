#include "server/layer_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/layer_name.h"
#include "server/refuse.h"
#include "server/unary_call.h"
#include "server/unknown_fields.h"
#include "triad/v1/layer.grpc.pb.h"

namespace triad {
namespace {

void Encode(const LoadedLayer& loaded, v1::Layer& message) {
  const LayerSpec& spec = loaded.layer->spec();
  message.set_name(loaded.name);
  message.set_version(loaded.version);
  message.set_model_dim(spec.model_dim);
  message.set_context_dim(spec.key_input_dim());
  message.set_output_dim(spec.output_dim);
  message.set_heads(spec.heads);
  message.set_kv_heads(spec.kv_heads);
  message.set_qk_head_dim(spec.qk_head_dim);
  message.set_v_head_dim(spec.v_head_dim);
  message.set_causal(spec.causal);
  message.set_rotary_dim(spec.rotary.dim);
  message.set_requires_context(spec.is_cross());
  message.set_weights_bytes(loaded.layer->weights_bytes());
}

// Name and version of any request of this service that has both.
template <class Request>
absl::StatusOr<LayerChoice> DecodeChoice(const Request& request) {
  LayerChoice choice{.name = request.name()};
  if (request.has_version()) choice.version = request.version();
  if (absl::Status status = CheckLayerName("name", choice.name); !status.ok()) return status;
  if (absl::Status status = CheckLayerVersion("version", choice.version); !status.ok()) return status;
  return choice;
}

LogFields Describe(const std::string& name, int64_t version) {
  return {{"name", name}, {"version", absl::StrCat(version)}};
}

absl::Status CheckAdmin(const ServingContext& context) {
  if (context.allow_layer_admin) return absl::OkStatus();
  return absl::PermissionDeniedError("layers are not to be loaded and unloaded here; --allow_layer_admin is off");
}

// Answered by the loader. A caller that leaves does not stop a load that was accepted.
class LoadCall final : public UnaryCall {
 public:
  using UnaryCall::UnaryCall;

  void Begin(const v1::LoadLayerRequest& request, v1::LoadLayerResponse& response) {
    absl::Status status = Submit(request, response);
    if (!status.ok()) Answer(std::move(status));
  }

 private:
  // OK: the loader's done will answer, or has already.
  absl::Status Submit(const v1::LoadLayerRequest& request, v1::LoadLayerResponse& response) {
    absl::Status status = CheckNothingUnknown(request);
    if (status.ok()) status = CheckAdmin(context_);
    if (!status.ok()) return status;
    absl::StatusOr<LayerChoice> choice = DecodeChoice(request);
    if (!choice.ok()) return choice.status();
    InFlightLedger::Answer answer = context_.ledger.Acquire({});  // so that a drain waits for it
    if (answer.refusal) context_.metrics.OnRefused(*answer.refusal);
    if (!answer.status.ok()) return std::move(answer.status);
    hold_ = std::move(answer.hold);
    status = context_.loader.Submit(*std::move(choice), [this, &response](absl::StatusOr<LoadedLayer> loaded) {
      if (loaded.ok()) {
        Encode(*loaded, *response.mutable_layer());
        context_.log.Info("layer loaded", Describe(loaded->name, loaded->version));
      } else {
        context_.log.Warning("layer not loaded", {{"reason", std::string(loaded.status().message())}});
      }
      Answer(loaded.status());
    });
    if (absl::IsUnavailable(status)) context_.metrics.OnRefused(Refusal::kDraining);
    if (absl::IsResourceExhausted(status)) context_.metrics.OnLoadRefused();
    return status;
  }

  // Loads take seconds, whatever the scheduler's queue is like.
  Duration retry_after() const override { return LayerLoader::kRetryAfter; }
};

class LayerService final : public v1::LayerService::CallbackService {
 public:
  explicit LayerService(ServingContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListLayers(grpc::CallbackServerContext* rpc, const v1::ListLayersRequest* request,
                                       v1::ListLayersResponse* response) override {
    return AnswerAtOnce({*rpc, *request, *response, Method::kListLayers}, context_, [&] {
      absl::Status status = request->name().empty() ? absl::OkStatus() : CheckLayerName("name", request->name());
      if (!status.ok()) return status;
      for (const LoadedLayer& layer : context_.layers.List(request->name())) Encode(layer, *response->add_layers());
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* GetLayer(grpc::CallbackServerContext* rpc, const v1::GetLayerRequest* request,
                                     v1::Layer* response) override {
    return AnswerAtOnce({*rpc, *request, *response, Method::kGetLayer}, context_, [&] {
      const absl::StatusOr<LayerChoice> choice = DecodeChoice(*request);
      if (!choice.ok()) return choice.status();
      const absl::StatusOr<LoadedLayer> layer = context_.layers.Find(choice->name, choice->version);
      if (layer.ok()) Encode(*layer, *response);
      return layer.status();
    });
  }

  grpc::ServerUnaryReactor* LoadLayer(grpc::CallbackServerContext* rpc, const v1::LoadLayerRequest* request,
                                      v1::LoadLayerResponse* response) override {
    auto* const call =
        std::make_unique<LoadCall>(UnaryExchange{*rpc, *request, *response, Method::kLoadLayer}, context_).release();
    call->Begin(*request, *response);
    return call;
  }

  grpc::ServerUnaryReactor* UnloadLayer(grpc::CallbackServerContext* rpc, const v1::UnloadLayerRequest* request,
                                        v1::UnloadLayerResponse* response) override {
    return AnswerAtOnce({*rpc, *request, *response, Method::kUnloadLayer}, context_, [&] {
      if (absl::Status status = CheckAdmin(context_); !status.ok()) return status;
      if (request->version() <= 0) {
        return RefuseField("version", "name the one to unload, > 0",
                           request->has_version() ? absl::StrCat(request->version()) : "unset");
      }
      const absl::StatusOr<LayerChoice> choice = DecodeChoice(*request);
      if (!choice.ok()) return choice.status();
      auto removed = context_.layers.Remove(choice->name, *choice->version);
      if (!removed.ok()) return removed.status();
      context_.loader.Discard(*std::move(removed));
      context_.log.Info("layer unloaded", Describe(choice->name, *choice->version));
      return absl::OkStatus();
    });
  }

 private:
  ServingContext& context_;
};

}  // namespace

const char* const kLayerServiceName = v1::LayerService::service_full_name();

std::shared_ptr<grpc::Service> MakeLayerService(ServingContext& context) {
  return std::make_shared<LayerService>(context);
}

}  // namespace triad
