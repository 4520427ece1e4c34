#include "client/tools/demo/run_demo.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/tools/demo/attention_map.h"
#include "client/tools/demo/demo_model.h"
#include "client/tools/demo/http_get.h"
#include "client/tools/demo/show_layers.h"
#include "triad/client.h"

namespace triad::tools {
namespace {

constexpr char kText[] = "The bank by the river was steep";

client::AttendRequest MakeRequest(const Sentence& sentence) {
  const client::Shape shape = {1, sentence.tokens(), kHeads, kHeadDim};
  client::AttendRequest request;
  request.query = client::TensorView::Float32(sentence.query, shape);
  request.key = client::TensorView::Float32(sentence.key, shape);
  request.value = client::TensorView::Float32(sentence.value, shape);
  request.return_weights = true;
  return request;
}

// The answer, once its sizes are what the request makes them.
absl::StatusOr<client::AttendResponse> Ask(const client::Client& client, const client::AttendRequest& request) {
  absl::StatusOr<client::AttendResponse> response = client.Attend(request);
  if (!response.ok()) return response;
  const auto tokens = static_cast<size_t>(request.query.shape[1]);
  if (response->output.float32().size() != tokens * kModelDim || !response->weights ||
      response->weights->float32().size() != kHeads * tokens * tokens) {
    return absl::InternalError("the answer does not have the shapes that the contract states");
  }
  return response;
}

// Queries, keys and values, by both kernels.
absl::Status ShowAttention(const client::Client& client, const Sentence& sentence, const DemoOptions& options,
                           std::ostream& out) {
  out << absl::StrFormat(
      "\"%s\": %d words, each %d numbers wide, as queries, keys and values of %d heads of %d.\n"
      "Embeddings and projections are drawn at random (seed %d): the map shows that attention is computed, and\n"
      "means nothing until weights are learnt.\n\n",
      kText, sentence.tokens(), kModelDim, kHeads, kHeadDim, options.seed);
  client::AttendRequest request = MakeRequest(sentence);
  const absl::StatusOr<client::AttendResponse> answer = Ask(client, request);
  if (!answer.ok()) return answer.status();
  const auto tokens = static_cast<size_t>(sentence.tokens());
  out << "Head " << options.head
      << ": how much each word (row) looks at each word (column); not causal, so all see all.\n\n";
  PrintAttentionMap(
      sentence.words,
      answer->weights->float32().subspan(static_cast<size_t>(options.head) * tokens * tokens, tokens * tokens), out);
  out << "\n";
  PrintTimings(answer->timings, out);

  request.kernel = client::Kernel::kReference;
  const absl::StatusOr<client::AttendResponse> reference = Ask(client, request);
  if (!reference.ok()) return reference.status();
  out << absl::StrFormat(
      "The same by kernel REFERENCE (double precision): outputs differ by at most %.2g, weights by at most %.2g.\n\n",
      LargestDifference(answer->output.float32(), reference->output.float32()),
      LargestDifference(answer->weights->float32(), reference->weights->float32()));
  return absl::OkStatus();
}

bool IsOfHistogram(absl::string_view sample) {
  const absl::string_view name = sample.substr(0, sample.find_first_of("{ "));
  return absl::EndsWith(name, "_bucket") || absl::EndsWith(name, "_sum") || absl::EndsWith(name, "_count");
}

}  // namespace

std::string InterestingMetrics(const std::string& page) {
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(page, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "triad_") || IsOfHistogram(line) || absl::EndsWith(line, " 0")) continue;
    absl::StrAppend(&kept, "  ", line, "\n");
  }
  return kept;
}

absl::Status RunDemo(const DemoOptions& options, const World& world) {
  client::ClientOptions client_options;
  client_options.target = options.target;
  auto connection = world.connect(client_options);
  if (!connection.ok()) return connection.status();
  const client::Client client(*std::move(connection));

  if (options.head >= kHeads) {
    return absl::InvalidArgumentError(absl::StrCat("--head must be below ", kHeads, "; was ", options.head));
  }

  const Sentence sentence = MakeSentence(kText, options.seed);
  absl::Status status = ShowAttention(client, sentence, options, world.out);
  if (status.ok()) status = ShowDemoLayer(client, sentence, options.head, world.out);
  if (!status.ok()) return status;

  if (options.http.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> page = HttpGet(options.http, "/metrics");
  if (!page.ok()) return page.status();
  world.out << "\nIts metrics at http://" << options.http << "/metrics now, zeros and histograms left out:\n\n"
            << InterestingMetrics(*page);
  return absl::OkStatus();
}

}  // namespace triad::tools
