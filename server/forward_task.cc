#include "server/forward_task.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/decode_forward.h"
#include "server/reply_tensors.h"

namespace triad {

absl::StatusOr<std::unique_ptr<ForwardTask>> ForwardTask::Create(ForwardJob job, const ForwardHost& host,
                                                                 Clock& clock) {
  try {
    absl::StatusOr<DecodedForward> decoded = DecodeForward(job.request, host.limits.max_batch);
    if (!decoded.ok()) return decoded.status();
    absl::StatusOr<LoadedLayer> layer = host.layers.Find(decoded->layer, decoded->version);
    if (!layer.ok()) return layer.status();
    absl::StatusOr<ForwardProblem> problem = ValidateForward(decoded->request, layer->layer->spec(), host.limits);
    if (!problem.ok()) return problem.status();
    if (absl::Status status = CheckPlanSize(problem->attention, host.max_head_sequences); !status.ok()) return status;
    auto task = std::unique_ptr<ForwardTask>(
        new ForwardTask(std::move(job), *std::move(layer), *std::move(problem), host.kernel, clock));
    task->priority_ = decoded->priority;
    return task;
  } catch (const std::exception& error) {  // std::bad_alloc or std::length_error: sizes are a client's
    return absl::ResourceExhaustedError(absl::StrCat("no memory to plan the request: ", error.what()));
  }
}

ForwardTask::ForwardTask(ForwardJob job, LoadedLayer layer, ForwardProblem problem, const AttentionKernel& kernel,
                         Clock& clock)
    : job_(std::move(job)),
      layer_(std::move(layer)),
      problem_(std::move(problem)),
      kernel_(kernel),
      clock_(clock),
      batch_record_(std::make_shared<BatchRecord>()) {
  const LayerSpec& spec = layer_.layer->spec();
  batch_record_->tokens = problem_.tokens;
  const std::vector<WorkItem> plan = kernel.Plan(problem_.attention);
  cost_.tokens = problem_.tokens;
  // As AttendTask counts them: what the request holds, the reply twice, once as tensors and once serialized.
  cost_.bytes = static_cast<int64_t>(job_.request.SpaceUsedLong()) +
                2 * ReplyBytes(problem_.attention, {problem_.dtype, problem_.output_shape}) +
                ActivationBytes(problem_, spec) + PlanBytes(problem_.attention, plan);
  cost_.flop = ProjectionFlop(*layer_.layer, problem_);
  for (const WorkItem& item : plan) cost_.flop += item.cost;
}

void ForwardTask::Share(absl::Span<Task* const> others) {
  for (Task* other : others) {
    auto* const sharer = static_cast<ForwardTask*>(other);  // one share key, one type: a layer's address is no other's
    sharers_.push_back(sharer);
    batch_record_->tokens += sharer->problem_.tokens;
    sharer->batch_record_ = batch_record_;
  }
  batch_record_->requests += static_cast<int64_t>(sharers_.size());
}

int64_t ForwardTask::item_count() const {
  return stage_ == 0 ? 1 : static_cast<int64_t>(batch_->item_costs(stage()).size());
}

double ForwardTask::item_flop(int64_t item) const {
  return stage_ == 0 ? 0 : batch_->item_costs(stage())[static_cast<size_t>(item)];
}

absl::Status ForwardTask::RunItem(int64_t item, Scratch& scratch) {
  return stage_ == 0 ? MakeBatch() : batch_->RunItem(stage(), item, scratch);
}

bool ForwardTask::NextStage() {
  TRIAD_CHECK(batch_ != nullptr, "the first stage makes the batch");
  if (stage_ == ForwardBatch::kStages) return false;
  ++stage_;
  return true;
}

ForwardMember ForwardTask::MakeMember() {
  const AttentionOutputs outputs =
      MakeReply(problem_.attention, {problem_.dtype, problem_.output_shape}, job_.response);
  return {.problem = &problem_, .reply = {.output = outputs.output, .lse = outputs.lse, .weights = outputs.weights}};
}

absl::Status ForwardTask::MakeBatch() {
  std::vector<ForwardMember> members = {MakeMember()};
  for (ForwardTask* sharer : sharers_) members.push_back(sharer->MakeMember());
  absl::StatusOr<std::unique_ptr<ForwardBatch>> batch =
      ForwardBatch::Create(*layer_.layer, kernel_, std::move(members));
  if (!batch.ok()) return batch.status();
  batch_ = *std::move(batch);
  batch_record_->flop = batch_->flop();
  return absl::OkStatus();
}

void ForwardTask::Finish(absl::Status status, const TaskTimes& times) {
  ComputedRequest effort;
  if (status.ok()) {
    effort = EffortOf(times);
    effort.flop_needed = FlopNeeded(problem_, layer_.layer->spec());
    if (!batch_record_->is_told.exchange(true)) {
      effort.batch_requests = batch_record_->requests;
      effort.batch_tokens = batch_record_->tokens;
      effort.flop_executed = batch_record_->flop;
    }
    job_.response.set_version(layer_.version);
    v1::Timings& timings = *job_.response.mutable_timings();
    timings.set_batch_requests(batch_record_->requests);
    timings.set_batch_tokens(batch_record_->tokens);
    SetTimings(effort, clock_.Now() - job_.received, timings);
  }
  // Last: the request and the response may be gone when it returns.
  job_.done(std::move(status), effort);
}

}  // namespace triad
