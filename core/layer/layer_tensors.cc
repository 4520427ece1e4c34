#include "core/layer/layer_tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/random.h"

namespace triad {
namespace {

// Edge of the squares in which weights are transposed: source and target rows are whole cache lines in every type, and
// the square itself (64 x 64 x 4 B = 16 KiB) stays in L1.
constexpr int64_t kSquare = 64;
// Elements that are widened, then checked, before the next: 16 KiB stay in L1.
constexpr int64_t kRun = 4096;

// -- What the spec asks for, and what the file has -------------------------------------------------------------------

// A tensor of the file and the projections that are made of it, one after another along its outputs.
struct Source {
  std::string field;  // of the spec, such as "query.weight"
  const std::string& name;
  Shape shape;
  TensorView view;  // once found
};

std::string Describe(const Source& source) {
  return absl::StrCat(source.field, ": '", absl::CHexEscape(source.name), "'");
}

Shape WeightShape(const LayerSpec& spec, int64_t outputs, int64_t inputs) {
  return spec.weight_order == WeightOrder::kOutIn ? Shape{outputs, inputs} : Shape{inputs, outputs};
}

absl::Status FindSource(const LayerSpec& spec, const SafetensorsView& file, Source& source) {
  absl::StatusOr<TensorView> found = file.Find(source.name);
  if (absl::IsNotFound(found.status())) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(source), " is not in the file"));
  }
  if (!found.ok()) return absl::InvalidArgumentError(absl::StrCat(source.field, ": ", found.status().message()));
  if (!IsFloat(found->dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(source), " must be FLOAT32, BFLOAT16 or FLOAT16; was ", Name(found->dtype)));
  }
  if (found->shape != source.shape) {
    const bool is_matrix = source.shape.size() == 2;
    const absl::string_view order = spec.weight_order == WeightOrder::kOutIn ? "OUT_IN" : "IN_OUT";
    const bool fits_turned = is_matrix && found->shape == Shape{source.shape[1], source.shape[0]};
    return absl::InvalidArgumentError(absl::StrCat(Describe(source), " must have shape ", ToString(source.shape),
                                                   is_matrix ? absl::StrCat(" (weight_order ", order, ")") : "",
                                                   "; was ", ToString(found->shape),
                                                   fits_turned ? ", which the other weight_order would take" : ""));
  }
  source.view = *std::move(found);
  return absl::OkStatus();
}

absl::Status CheckNothingElse(const SafetensorsView& file, const std::set<std::string>& named) {
  for (const std::string& name : file.names()) {
    if (named.count(name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(name),
                                                   "' is in the file, but the layer names no such tensor; whatever it "
                                                   "does in the model, the answer would lack it"));
  }
  return absl::OkStatus();
}

// -- Reading elements ------------------------------------------------------------------------------------------------

// Magnitudes of this and more are refused: infinity and NaN, and for a layer that computes in BFLOAT16 also what rounds
// to infinity there.
uint32_t SmallestRefused(DType compute) { return compute == DType::kBf16 ? 0x7f7f8000 : 0x7f800000; }

template <DType kDType>
void WidenRun(const std::byte* source, int64_t count, float* target) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kDType == DType::kF32) {
      std::memcpy(target + i, source + i * 4, 4);
    } else {
      uint16_t bits;
      std::memcpy(&bits, source + i * 2, 2);
      target[i] = kDType == DType::kBf16 ? Bf16ToF32(bits) : F16ToF32(bits);
    }
  }
}

void Widen(const std::byte* source, DType dtype, int64_t count, float* target) {
  switch (dtype) {
    case DType::kBf16:
      return WidenRun<DType::kBf16>(source, count, target);
    case DType::kF16:
      return WidenRun<DType::kF16>(source, count, target);
    default:
      return WidenRun<DType::kF32>(source, count, target);
  }
}

// Index of the first value that is refused, or -1.
int64_t FirstRefused(const float* values, int64_t count, uint32_t smallest_refused) {
  const auto refused = [smallest_refused](float value) {
    return (std::bit_cast<uint32_t>(value) & 0x7fffffff) >= smallest_refused;
  };
  bool any = false;
  for (int64_t i = 0; i < count; ++i) any |= refused(values[i]);  // without a branch, so that it takes whole vectors
  return any ? std::find_if(values, values + count, refused) - values : -1;
}

absl::Status RefuseElement(const Source& source, int64_t element, float value) {
  const int64_t columns = source.shape.back();
  const std::string place = source.shape.size() == 2
                                ? absl::StrCat("[", element / columns, ", ", element % columns, "]")
                                : absl::StrCat("[", element, "]");
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(source), place, " must be finite in the layer's compute type; was ", value));
}

// Rows [first_row, first_row + rows) of `source`, whose last dimension is `target`'s too, as they lie.
absl::Status CopyRows(const Source& source, DType compute, int64_t first_row, Tensor& target) {
  const int64_t columns = target.shape().size() == 2 ? target.shape()[1] : 1;
  const int64_t begin = first_row * columns;
  auto* values = reinterpret_cast<float*>(target.data());
  for (int64_t done = 0; done < target.element_count(); done += kRun) {
    const int64_t count = std::min(kRun, target.element_count() - done);
    const std::byte* from = source.view.data + (begin + done) * ByteSize(source.view.dtype);
    Widen(from, source.view.dtype, count, values + done);
    const int64_t refused = FirstRefused(values + done, count, SmallestRefused(compute));
    if (refused >= 0) return RefuseElement(source, begin + done + refused, values[done + refused]);
  }
  return absl::OkStatus();
}

// Columns [first_column, first_column + outputs) of `source` [inputs, columns], into the rows of `target` [outputs,
// inputs]. By squares: a column read or written alone would take a cache line for each element.
absl::Status CopyColumns(const Source& source, DType compute, int64_t first_column, Tensor& target) {
  const int64_t outputs = target.shape()[0];
  const int64_t inputs = target.shape()[1];
  const int64_t columns = source.shape[1];
  auto* values = reinterpret_cast<float*>(target.data());
  float row[kSquare];
  std::vector<float> square(kSquare * kSquare);  // [output][input]
  for (int64_t i0 = 0; i0 < inputs; i0 += kSquare) {
    const int64_t height = std::min(kSquare, inputs - i0);
    for (int64_t o0 = 0; o0 < outputs; o0 += kSquare) {
      const int64_t width = std::min(kSquare, outputs - o0);
      for (int64_t i = 0; i < height; ++i) {
        const int64_t element = (i0 + i) * columns + first_column + o0;
        Widen(source.view.data + element * ByteSize(source.view.dtype), source.view.dtype, width, row);
        const int64_t refused = FirstRefused(row, width, SmallestRefused(compute));
        if (refused >= 0) return RefuseElement(source, element + refused, row[refused]);
        for (int64_t o = 0; o < width; ++o) square[static_cast<size_t>(o * kSquare + i)] = row[o];
      }
      for (int64_t o = 0; o < width; ++o) {
        std::memcpy(values + (o0 + o) * inputs + i0, square.data() + o * kSquare,
                    static_cast<size_t>(height) * sizeof(float));
      }
    }
  }
  return absl::OkStatus();
}

// -- Projections -----------------------------------------------------------------------------------------------------

// One projection, and its place among the outputs of the tensors it is read from.
struct Part {
  const Source* weight;
  const Source* bias;  // null: none
  int64_t first_output;
  int64_t outputs;
  int64_t inputs;
};

absl::StatusOr<ProjectionTensors> ReadPart(const LayerSpec& spec, const Part& part) {
  absl::StatusOr<Tensor> weight = Tensor::Zeros(DType::kF32, {part.outputs, part.inputs});
  if (!weight.ok()) return weight.status();
  absl::Status status = spec.weight_order == WeightOrder::kOutIn
                            ? CopyRows(*part.weight, spec.compute, part.first_output, *weight)
                            : CopyColumns(*part.weight, spec.compute, part.first_output, *weight);
  if (!status.ok()) return status;
  absl::StatusOr<Tensor> bias = Tensor::Zeros(DType::kF32, {part.bias != nullptr ? part.outputs : 0});
  if (!bias.ok()) return bias.status();
  if (part.bias != nullptr) {
    if (status = CopyRows(*part.bias, spec.compute, part.first_output, *bias); !status.ok()) return status;
  }
  return ProjectionTensors{.weight = *std::move(weight), .bias = *std::move(bias)};
}

// A projection's tensors in the file, and where it ends up.
struct NamedProjection {
  absl::string_view field;
  const ProjectionNames& names;
  int64_t outputs;
  int64_t inputs;
};

std::vector<NamedProjection> NamedProjections(const LayerSpec& spec) {
  const int64_t kv_inputs = spec.key_input_dim();
  std::vector<NamedProjection> projections;
  if (spec.is_fused()) {
    const int64_t outputs = spec.query_width() + spec.key_width() + spec.value_width();
    projections.push_back({"fused", spec.fused, outputs, spec.model_dim});
  } else {
    projections.push_back({"query", spec.query, spec.query_width(), spec.model_dim});
    projections.push_back({"key", spec.key, spec.key_width(), kv_inputs});
    projections.push_back({"value", spec.value, spec.value_width(), kv_inputs});
  }
  projections.push_back({"output", spec.output, spec.output_dim, spec.mixed_width()});
  return projections;
}

// Weight and bias of each named projection, in order; a projection without a bias has none.
struct SourcePair {
  Source weight;
  std::optional<Source> bias;
};

// Everything that can be said without reading an element.
absl::StatusOr<std::vector<SourcePair>> FindSources(const LayerSpec& spec, const SafetensorsView& file) {
  std::vector<SourcePair> sources;
  std::set<std::string> named;
  for (const NamedProjection& p : NamedProjections(spec)) {
    SourcePair pair = {.weight = {.field = absl::StrCat(p.field, ".weight"),
                                  .name = p.names.weight,
                                  .shape = WeightShape(spec, p.outputs, p.inputs)}};
    if (absl::Status status = FindSource(spec, file, pair.weight); !status.ok()) return status;
    named.insert(p.names.weight);
    if (!p.names.bias.empty()) {
      pair.bias.emplace(Source{.field = absl::StrCat(p.field, ".bias"), .name = p.names.bias, .shape = {p.outputs}});
      if (absl::Status status = FindSource(spec, file, *pair.bias); !status.ok()) return status;
      named.insert(p.names.bias);
    }
    sources.push_back(std::move(pair));
  }
  if (absl::Status status = CheckNothingElse(file, named); !status.ok()) return status;
  return sources;
}

// -- Seeded weights --------------------------------------------------------------------------------------------------

absl::StatusOr<ProjectionTensors> MakePart(int64_t outputs, int64_t inputs, bool has_bias, Random& random) {
  absl::StatusOr<Tensor> weight = Tensor::Zeros(DType::kF32, {outputs, inputs});
  if (!weight.ok()) return weight.status();
  absl::StatusOr<Tensor> bias = Tensor::Zeros(DType::kF32, {has_bias ? outputs : 0});
  if (!bias.ok()) return bias.status();
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(inputs)));
  auto* values = reinterpret_cast<float*>(weight->data());
  for (int64_t i = 0; i < weight->element_count(); ++i) values[i] = random.Deviate() * scale;
  return ProjectionTensors{.weight = *std::move(weight), .bias = *std::move(bias)};
}

}  // namespace

absl::StatusOr<LayerTensors> ReadLayerTensors(const LayerSpec& spec, const SafetensorsView& file) {
  const absl::StatusOr<std::vector<SourcePair>> sources = FindSources(spec, file);
  if (!sources.ok()) return sources.status();
  const auto part = [&](size_t source, int64_t first_output, int64_t outputs, int64_t inputs) {
    const SourcePair& pair = (*sources)[source];
    return Part{&pair.weight, pair.bias ? &*pair.bias : nullptr, first_output, outputs, inputs};
  };
  // The fused tensor is one source, at growing outputs; else each has its own.
  const size_t step = spec.is_fused() ? 0 : 1;
  const int64_t key_begin = spec.is_fused() ? spec.query_width() : 0;
  const int64_t value_begin = spec.is_fused() ? spec.query_width() + spec.key_width() : 0;
  const int64_t kv_inputs = spec.key_input_dim();

  LayerTensors tensors;
  for (const auto& [target, from] :
       {std::pair<ProjectionTensors*, Part>{&tensors.query, part(0, 0, spec.query_width(), spec.model_dim)},
        {&tensors.key, part(step, key_begin, spec.key_width(), kv_inputs)},
        {&tensors.value, part(2 * step, value_begin, spec.value_width(), kv_inputs)},
        {&tensors.output, part(sources->size() - 1, 0, spec.output_dim, spec.mixed_width())}}) {
    absl::StatusOr<ProjectionTensors> read = ReadPart(spec, from);
    if (!read.ok()) return read.status();
    *target = *std::move(read);
  }
  return tensors;
}

absl::StatusOr<LayerTensors> MakeSeededTensors(const LayerSpec& spec, uint64_t seed) {
  if (absl::Status status = ValidateLayerSpec(spec); !status.ok()) return status;
  struct Target {
    ProjectionTensors* tensors;
    const ProjectionNames& names;
    int64_t outputs;
    int64_t inputs;
  };
  LayerTensors tensors;
  Random random(seed);
  const int64_t kv_inputs = spec.key_input_dim();
  for (const Target& target : {
           Target{&tensors.query, spec.is_fused() ? spec.fused : spec.query, spec.query_width(), spec.model_dim},
           {&tensors.key, spec.is_fused() ? spec.fused : spec.key, spec.key_width(), kv_inputs},
           {&tensors.value, spec.is_fused() ? spec.fused : spec.value, spec.value_width(), kv_inputs},
           {&tensors.output, spec.output, spec.output_dim, spec.mixed_width()},
       }) {
    absl::StatusOr<ProjectionTensors> made =
        MakePart(target.outputs, target.inputs, !target.names.bias.empty(), random);
    if (!made.ok()) return made.status();
    *target.tensors = *std::move(made);
  }
  return tensors;
}

LayerSpec DemoLayerSpec() {
  return {.model_dim = 512,
          .output_dim = 512,
          .heads = 8,
          .kv_heads = 8,
          .qk_head_dim = 64,
          .v_head_dim = 64,
          .alignment = Alignment::kTopLeft,
          .query = {.weight = "query.weight"},
          .key = {.weight = "key.weight"},
          .value = {.weight = "value.weight"},
          .output = {.weight = "output.weight"}};
}

}  // namespace triad
