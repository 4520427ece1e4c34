#include "client/tools/bench/check_answers.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/tools/bench/attention_rows.h"
#include "core/base/dims.h"

namespace triad::tools {
namespace {

constexpr int64_t kMostRows = 64;  // a check takes milliseconds, however long the request

std::string Describe(const SampledAnswer& answer) {
  return absl::StrCat("request of ", answer.request.tokens, " tokens, ", answer.request.kv_len, " keys, seed ",
                      answer.request.seed);
}

// Rows whose reference the server computes; 0: not even one.
int64_t RowsToCheck(const Workload& w, const PlannedRequest& plan, int64_t max_reference_work) {
  const int64_t work_of_row = plan.kv_len * w.heads * (w.qk_head_dim + w.v_head_dim);
  const int64_t allowed = max_reference_work / std::max<int64_t>(work_of_row, 1);
  return std::min({plan.tokens, kMostRows, allowed});
}

// The last `rows` of sequence `sequence` of an output [batch, q_len, heads, v_head_dim], widened.
std::vector<float> OutputRows(const client::Tensor& output, int64_t sequence, int64_t rows) {
  const client::Shape& shape = output.shape();
  const std::vector<float> all = output.CopyToFloat32();
  const int64_t row_size = shape[2] * shape[3];
  const int64_t end = (sequence + 1) * shape[1] * row_size;
  return {all.begin() + (end - rows * row_size), all.begin() + end};
}

void CheckAttend(const SampledAnswer& answer, const RequestBuilder& builder, const client::Client& client,
                 const client::CallOptions& options, CheckReport& report) {
  const Workload& w = builder.workload();
  const auto cannot = [&](const absl::Status& status) {
    ++report.unchecked;
    report.why_unchecked = status.ToString();
  };
  const auto wrong = [&](const std::string& what) {
    if (report.wrong++ == 0) report.first_wrong = absl::StrCat(Describe(answer), ": ", what);
  };
  const client::Shape expected = {w.batch, answer.request.tokens, w.heads, w.v_head_dim};
  if (answer.output.shape() != expected) return wrong("the output's shape is not that of the request");
  const auto info = client.GetServerInfo(options);
  if (!info.ok()) return cannot(info.status());
  const int64_t rows = RowsToCheck(w, answer.request, info->limits.max_reference_work);
  if (rows == 0) return cannot(absl::OutOfRangeError("one row is more than the server's --max_reference_work"));

  const auto sequence = static_cast<int64_t>(answer.request.seed % static_cast<uint64_t>(w.batch));
  const AttentionRows problem = LastRows(builder.Attend(answer.request), sequence, rows);
  const auto truth = client.Attend(ReferenceRequest(problem), options);
  if (!truth.ok()) return cannot(truth.status());
  const double excess =
      ExcessError(problem, w.dtype, OutputRows(answer.output, sequence, rows), truth->output.CopyToFloat32());
  report.largest_excess = std::max(report.largest_excess, excess);
  if (excess <= 1) {
    ++report.right;
  } else {
    wrong(absl::StrCat("differs from kernel REFERENCE by ", excess, " times the bound"));
  }
}

void CheckForward(const SampledAnswer& answer, const RequestBuilder& builder, const client::Client& client,
                  const client::CallOptions& options, CheckReport& report) {
  client::ForwardRequest request = builder.Forward(answer.request);
  request.version = answer.layer_version;  // the one that answered, should another have been loaded since
  const auto alone = client.Forward(request, options);
  if (!alone.ok()) {
    ++report.unchecked;
    report.why_unchecked = alone.status().ToString();
  } else if (alone->output.data() == answer.output.data() && alone->output.shape() == answer.output.shape()) {
    ++report.right;
  } else if (report.wrong++ == 0) {
    report.first_wrong = absl::StrCat(Describe(answer), ": its bytes differ from those of the same request alone");
  }
}

}  // namespace

CheckReport CheckAnswers(const std::vector<SampledAnswer>& answers, const RequestBuilder& builder,
                         const std::vector<client::Client>& clients, std::stop_token stop) {
  const client::CallOptions options{.cancel = stop};
  CheckReport report;
  for (const SampledAnswer& answer : answers) {
    if (stop.stop_requested()) break;
    const int64_t unchecked_before = report.unchecked;
    const client::Client& client = clients[answer.target];
    if (builder.workload().kind == Workload::Kind::kAttend) {
      CheckAttend(answer, builder, client, options, report);
    } else {
      CheckForward(answer, builder, client, options, report);
    }
    if (stop.stop_requested()) report.interrupted += report.unchecked - unchecked_before;
  }
  const int64_t left = static_cast<int64_t>(answers.size()) - report.right - report.wrong - report.unchecked;
  if (left > 0) report.why_unchecked = "interrupted";
  report.unchecked += left;
  report.interrupted += left;
  return report;
}

}  // namespace triad::tools
