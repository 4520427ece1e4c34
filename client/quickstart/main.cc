// Attention of one sentence of four tokens over itself, and a layer applied to it, computed by a Triad server.
//
//   quickstart [target]      target: "127.0.0.1:8470" (default), "unix:/path/to/socket", ...
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "triad/client.h"

namespace {

constexpr int64_t kTokens = 4;
constexpr int64_t kHeads = 2;
constexpr int64_t kHeadDim = 8;
constexpr int64_t kModelDim = 512;  // of the layer "demo"

// [batch 1, tokens, heads, head_dim]: numbers that differ from token to token and from seed to seed.
std::vector<float> MakeValues(int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < kTokens * kHeads * kHeadDim; ++i) {
    values.push_back(static_cast<float>((i * 7 + seed * 13) % 11) / 5 - 1);
  }
  return values;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using triad::client::TensorView;
  const std::string target = argc > 1 ? argv[1] : "127.0.0.1:8470";
  const absl::StatusOr<triad::client::Client> client = triad::client::Client::Create({.target = target});
  if (!client.ok()) return Fail(client.status());

  // The views borrow these until Attend returns.
  const std::vector<float> query = MakeValues(1);
  const std::vector<float> key = MakeValues(2);
  const std::vector<float> value = MakeValues(3);
  const triad::client::Shape shape = {1, kTokens, kHeads, kHeadDim};
  triad::client::AttendRequest request;
  request.query = TensorView::Float32(query, shape);
  request.key = TensorView::Float32(key, shape);
  request.value = TensorView::Float32(value, shape);
  request.causal = true;
  request.return_weights = true;

  const absl::StatusOr<triad::client::AttendResponse> answer = client->Attend(request, {.timeout = absl::Seconds(5)});
  if (!answer.ok()) return Fail(answer.status());

  std::printf("weights of head 0, a row for each token:\n");
  const absl::Span<const float> weights = answer->weights->float32();  // [1, heads, tokens, tokens]
  for (int64_t row = 0; row < kTokens; ++row) {
    for (int64_t column = 0; column < kTokens; ++column) std::printf(" %.3f", weights[row * kTokens + column]);
    std::printf("\n");
  }
  std::printf("output of the first token, head 0: %.3f %.3f ...\n", answer->output.float32()[0],
              answer->output.float32()[1]);
  std::printf("computed in %.0f us\n", absl::ToDoubleMicroseconds(answer->timings.compute));

  // A layer that the server hosts takes hidden states and brings its own weights; "demo" is built in, 512 wide.
  const std::vector<float> hidden(kTokens * kModelDim, 0.5F);
  triad::client::ForwardRequest forward;
  forward.layer = "demo";
  forward.input = TensorView::Float32(hidden, {1, kTokens, kModelDim});
  const absl::StatusOr<triad::client::ForwardResponse> states = client->Forward(forward);
  if (!states.ok()) return Fail(states.status());
  std::printf("layer demo, version %d: first output %.3f\n", static_cast<int>(states->version),
              states->output.float32()[0]);
  return 0;
}
