#include "client/tools/demo/show_layers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/tools/demo/attention_map.h"

namespace triad::tools {
namespace {

constexpr char kDemoLayer[] = "demo";  // built into the server
constexpr uint64_t kBurst = 8;         // requests sent at once: enough that some wait for others

absl::Status NotTheContract() {
  return absl::InternalError("the answer does not have the shapes that the contract states");
}

// Asks for the attention of `layer` and prints the map of `head`.
absl::StatusOr<client::ForwardResponse> ShowMap(const client::Client& client, const client::ForwardRequest& request,
                                                const std::vector<std::string>& words, int64_t head,
                                                std::ostream& out) {
  absl::StatusOr<client::ForwardResponse> answer = client.Forward(request);
  if (!answer.ok()) return answer;
  const auto tokens = static_cast<int64_t>(words.size());
  if (!answer->weights || answer->weights->shape().size() != 4) return NotTheContract();
  const int64_t heads = answer->weights->shape()[1];
  if (answer->weights->shape() != client::Shape({1, heads, tokens, tokens})) return NotTheContract();
  if (head >= heads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--head must be below the ", heads, " heads of layer ", request.layer, "; was ", head));
  }
  out << absl::StrFormat("Layer %s, version %d, head %d of %d:\n\n", request.layer, answer->version, head, heads);
  PrintAttentionMap(words,
                    answer->weights->float32().subspan(static_cast<size_t>(head * tokens * tokens),
                                                       static_cast<size_t>(tokens * tokens)),
                    out);
  out << "\n";
  return answer;
}

// Sends `request` kBurst times over one stream. Each answer has to be `alone`, the answer to one request by itself,
// byte for byte.
absl::Status ShowSharing(const client::Client& client, const client::ForwardRequest& request,
                         const client::ForwardResponse& alone, std::ostream& out) {
  const absl::StatusOr<std::unique_ptr<client::ForwardStream>> stream = client.OpenForwardStream();
  if (!stream.ok()) return stream.status();
  for (uint64_t id = 0; id < kBurst; ++id) {
    if (absl::Status status = (*stream)->Send(id, request); !status.ok()) break;  // Finish says why
  }
  (*stream)->HalfClose().IgnoreError();  // likewise
  int64_t most_requests = 0;
  int64_t most_tokens = 0;
  bool same_bytes = true;
  while (const std::optional<client::ForwardAnswer> answer = (*stream)->Next()) {
    if (!answer->response.ok()) return answer->response.status();
    same_bytes = same_bytes && answer->response->output.data() == alone.output.data();
    most_requests = std::max(most_requests, answer->response->timings.batch_requests);
    most_tokens = std::max(most_tokens, answer->response->timings.batch_tokens);
  }
  if (absl::Status status = (*stream)->Finish(); !status.ok()) return status;
  out << absl::StrFormat(
      "The same %d times at once: up to %d requests (%d tokens) shared their projections; the bytes of the answers "
      "%s.\n",
      kBurst, most_requests, most_tokens, same_bytes ? "are equal" : "DIFFER");
  return same_bytes ? absl::OkStatus() : absl::InternalError("an answer depended on what else was asked");
}

}  // namespace

void PrintTimings(const client::Timings& timings, std::ostream& out) {
  const auto microseconds = [](absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); };
  out << absl::StrFormat("The server says: %.0f us queued, %.0f us computed, %.0f us from request to reply.\n",
                         microseconds(timings.queue), microseconds(timings.compute), microseconds(timings.total));
}

absl::Status ShowDemoLayer(const client::Client& client, const Sentence& sentence, int64_t head, std::ostream& out) {
  out << absl::StrFormat(
      "Now a layer that the server hosts: it gets the words' hidden states [1, %d, %d], and projects, attends and\n"
      "projects back by weights of its own (random too). ",
      sentence.tokens(), kModelDim);
  const client::ForwardRequest request = {
      .layer = kDemoLayer,
      .input = client::TensorView::Float32(sentence.hidden, {1, sentence.tokens(), kModelDim}),
      .return_weights = true};
  const auto answer = ShowMap(client, request, sentence.words, head, out);
  if (!answer.ok()) return answer.status();
  PrintTimings(answer->timings, out);
  return ShowSharing(client, request, *answer, out);
}

}  // namespace triad::tools
