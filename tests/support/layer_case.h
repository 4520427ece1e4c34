// Layers and requests for tests: made from few words, run on the machine's own kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/attention_kernel.h"
#include "core/layer/forward_problem.h"
#include "core/layer/hosted_layer.h"
#include "tests/support/layer_reference.h"

namespace triad {

// `spec` with what it leaves at 0 filled in as layer.textproto's defaults are.
LayerSpec WithDefaults(LayerSpec spec);

// Weights N(0, 1 / inputs); biases N(0, 1), or none.
LayerTensors NormalTensors(const LayerSpec& spec, uint64_t seed, bool has_biases);

// Rows N(0, 1), exact in `dtype`.
std::vector<float> NormalRows(DType dtype, int64_t rows, int64_t width, uint64_t seed);

struct TestLayer {
  explicit TestLayer(LayerSpec layer_spec, bool has_biases = true);

  const LayerSpec spec;
  const LayerTensors tensors;
  const std::unique_ptr<const HostedLayer> hosted;
};

// The kernel of the machine's best instruction set; one for the process.
const AttentionKernel& MachineKernel();

// Owns what a ForwardRequest borrows: bytes at odd addresses, of exactly the shape's size.
class TestRequest {
 public:
  // Sequences one after another, all of full length unless `padded_tokens` > 0: then [batch, padded_tokens, width] with
  // lengths, and NaN in the padding.
  TestRequest(const LayerSpec& spec, DType dtype, std::vector<LayerSequence> sequences, int64_t padded_tokens = 0);

  ForwardRequest request;
  const std::vector<LayerSequence> sequences;

 private:
  TensorView Store(const std::vector<std::vector<float>>& rows, int64_t width, int64_t padded_tokens);

  const DType dtype_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers_;
};

struct TestAnswer {
  std::vector<float> output;           // [rows, output_dim], widened
  std::vector<std::byte> output_bytes;
  std::vector<float> lse;
  std::vector<float> weights;

  // Output row `row` as it is in the reply.
  std::vector<std::byte> RowBytes(int64_t row, int64_t rows) const;
};

// Runs the requests as one batch, stage by stage, the items of each in reverse when `backwards`.
std::vector<TestAnswer> RunBatch(const TestLayer& layer, absl::Span<const ForwardRequest> requests,
                                 bool backwards = false);
TestAnswer RunAlone(const TestLayer& layer, const ForwardRequest& request);

}  // namespace triad
