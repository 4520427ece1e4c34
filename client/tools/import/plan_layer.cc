#include "client/tools/import/plan_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/tools/import/config_reader.h"
#include "client/tools/import/family.h"

namespace triad::tools {
namespace {

// One layer in the making.
struct Draft {
  const Checkpoint& checkpoint;
  const Naming& naming;
  bool has_configured_bias;
  std::string prefix;  // of the layer's tensors, such as "bert.encoder.layer.3."
  LayerPlan plan;
};

// Finds "<prefix><layers><index>." by the one tensor that every layer has, the output projection's weight.
absl::StatusOr<std::string> FindPrefix(const Checkpoint& checkpoint, const Naming& naming, int64_t index) {
  std::vector<std::string> found;
  for (absl::string_view prefix : naming.prefixes) {
    std::string candidate = absl::StrCat(prefix, naming.layers, index, ".");
    if (checkpoint.contains(absl::StrCat(candidate, naming.output.name, ".weight"))) {
      found.push_back(std::move(candidate));
    }
  }
  if (found.size() == 1) return found[0];
  const std::string name = absl::StrCat(naming.layers, index, ".", naming.output.name, ".weight");
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("no tensor '", name, "', with none of these before it: '",
                                            absl::StrJoin(naming.prefixes, "', '"), "'"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("two models in one: '", name, "' is below each of ", absl::StrJoin(found, ", ")));
}

// Takes a tensor into the plan, under its name below the layer.
absl::Status Take(const std::string& name, const Shape& shape, Draft& draft) {
  const std::string full_name = absl::StrCat(draft.prefix, name);
  const absl::StatusOr<TensorView> tensor = draft.checkpoint.Find(full_name);
  if (!tensor.ok()) return tensor.status();
  if (!IsFloat(tensor->dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", full_name, "': type must be F32, BF16 or F16; was ", Name(tensor->dtype)));
  }
  if (tensor->shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat("'", full_name, "': shape must be ", ToString(shape),
                                                   " by config.json; was ", ToString(tensor->shape)));
  }
  draft.plan.tensors[name] = *tensor;
  return absl::OkStatus();
}

// Takes the tensors of a projection from `inputs` to `outputs`, and names them in `text`.
absl::Status TakeProjection(const ProjectionNaming& naming, int64_t inputs, int64_t outputs, ProjectionText& text,
                            Draft& draft) {
  if (naming.name.empty()) return absl::OkStatus();
  text.weight = absl::StrCat(naming.name, ".weight");
  const Shape shape = draft.naming.in_out ? Shape{inputs, outputs} : Shape{outputs, inputs};
  if (absl::Status status = Take(text.weight, shape, draft); !status.ok()) return status;
  const bool has_bias =
      naming.bias == BiasRule::kAlways || (naming.bias == BiasRule::kByConfig && draft.has_configured_bias);
  if (!has_bias) return absl::OkStatus();
  text.bias = absl::StrCat(naming.name, ".bias");
  return Take(text.bias, {outputs}, draft);
}

absl::Status TakeProjections(Draft& draft) {
  LayerText& text = draft.plan.text;
  const Naming& naming = draft.naming;
  const int64_t width = text.heads * text.head_dim;
  const int64_t kv_width = text.kv_heads * text.head_dim;
  absl::Status status = TakeProjection(naming.query, text.model_dim, width, text.query, draft);
  if (status.ok()) status = TakeProjection(naming.key, text.model_dim, kv_width, text.key, draft);
  if (status.ok()) status = TakeProjection(naming.value, text.model_dim, kv_width, text.value, draft);
  if (status.ok()) status = TakeProjection(naming.fused, text.model_dim, width + 2 * kv_width, text.fused, draft);
  if (status.ok()) status = TakeProjection(naming.output, width, text.model_dim, text.output, draft);
  return status;
}

// Refuses tensors of the layer's attention that nothing above has taken.
absl::Status CheckRest(const Draft& draft) {
  const absl::Span<const absl::string_view> ignored = draft.naming.ignored;
  for (absl::string_view part : draft.naming.attention) {
    for (const std::string& full_name : draft.checkpoint.NamesBelow(absl::StrCat(draft.prefix, part))) {
      const std::string name = full_name.substr(draft.prefix.size());
      if (draft.plan.tensors.count(name) > 0 || std::count(ignored.begin(), ignored.end(), name) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "'", full_name,
          "' is not understood: by config.json this attention has no such tensor, or it is not supported"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LayerPlan> PlanLayer(const Checkpoint& checkpoint, const Family& family, ConfigReader& config,
                                    int64_t index) {
  LayerText text = family.read(config, index);
  const bool has_configured_bias =
      !family.bias_field.empty() && config.Flag(std::string(family.bias_field), family.bias_by_default);
  if (!config.status().ok()) return config.status();
  absl::StatusOr<std::string> prefix = FindPrefix(checkpoint, *family.naming, index);
  if (!prefix.ok()) return prefix.status();
  text.in_out = family.naming->in_out;
  Draft draft = {.checkpoint = checkpoint,
                 .naming = *family.naming,
                 .has_configured_bias = has_configured_bias,
                 .prefix = *std::move(prefix),
                 .plan = {.index = index, .text = std::move(text), .tensors = {}}};
  if (absl::Status status = TakeProjections(draft); !status.ok()) return status;
  if (absl::Status status = CheckRest(draft); !status.ok()) return status;
  return std::move(draft.plan);
}

}  // namespace

absl::StatusOr<std::vector<LayerPlan>> PlanLayers(const Checkpoint& checkpoint, const PlanOptions& options) {
  ConfigReader config(checkpoint.config(), "config.json");
  const absl::StatusOr<const Family*> family = FindFamily(config);
  if (!family.ok()) return family.status();
  const int64_t layers = config.Size(std::string((*family)->layer_count_field));
  if (!config.status().ok()) return config.status();
  if (options.layer && (*options.layer < 0 || *options.layer >= layers)) {
    return absl::InvalidArgumentError(absl::StrCat("--layer must be from 0 to ", layers - 1, "; was ", *options.layer));
  }
  std::vector<LayerPlan> plans;
  for (int64_t index = options.layer.value_or(0); index < (options.layer ? *options.layer + 1 : layers); ++index) {
    absl::StatusOr<LayerPlan> plan = PlanLayer(checkpoint, **family, config, index);
    if (!plan.ok()) return plan.status();
    plan->text.bf16_compute = options.bf16_compute;
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace triad::tools
