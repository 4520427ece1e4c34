#include "server/attend_task.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/attention/reference_attention.h"
#include "tests/support/cut_pieces.h"
#include "tests/support/fake_clock.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

// Reads whole keys and values only, and everything else as the reference does; or pieces too.
class PickyKernel final : public AttentionKernel {
 public:
  explicit PickyKernel(bool reads_pieces) : reads_pieces_(reads_pieces) {}
  absl::string_view name() const override { return "picky"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override {
    EXPECT_TRUE(reads_pieces_ || (problem.key.pieces == nullptr && problem.value.pieces == nullptr));
    return reference_.Plan(problem);
  }
  bool ReadsPieces(const AttentionProblem&) const override { return reads_pieces_; }
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override {
    return reference_.Run(problem, item, outputs, scratch);
  }

 private:
  const bool reads_pieces_;
  const ReferenceAttention reference_{};
};

class AttendTaskTest : public ::testing::Test {
 protected:
  void Make(const v1::AttendRequest& request, std::unique_ptr<KeyValuePieces> pieces = nullptr) {
    request_ = request;
    AttendJob job{.request = request_,
                  .response = response_,
                  .pieces = std::move(pieces),
                  .received = clock_.Now(),
                  .done = [this](absl::Status status, const ComputedRequest& effort) {
                    end_ = std::move(status);
                    effort_ = effort;
                  }};
    absl::StatusOr<std::unique_ptr<AttendTask>> task = AttendTask::Create(
        std::move(job), {.limits = {}, .max_head_sequences = 1000, .fast = picky_, .reference = reference_}, clock_);
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
  }

  // Takes the data of key and value out of `request`, into pieces of 1000 bytes.
  std::unique_ptr<KeyValuePieces> TakeApart(v1::AttendRequest& request) {
    auto pieces = std::make_unique<KeyValuePieces>();
    const auto memory = std::make_shared<std::pair<std::optional<CutPieces>, std::optional<CutPieces>>>();
    const auto cut = [](v1::Tensor& tensor, std::optional<CutPieces>& to) {
      to.emplace(reinterpret_cast<const std::byte*>(tensor.data().data()), static_cast<int64_t>(tensor.data().size()),
                 [] { return int64_t{1000}; });
      tensor.clear_data();
      return to->get();
    };
    pieces->key = cut(*request.mutable_key(), memory->first);
    pieces->value = cut(*request.mutable_value(), memory->second);
    pieces->held_bytes = kHeldBytes;
    pieces->memory = memory;
    memory_ = memory;
    return pieces;
  }

  void RunStage() {
    double flop = 0;
    for (int64_t item = 0; item < task_->item_count(); ++item) {
      flop += task_->item_flop(item);
      const absl::Status status = task_->RunItem(item, scratch_);
      ASSERT_TRUE(status.ok()) << status;
    }
    flop_ += flop;
  }
  void Finish(absl::Status status) {
    task_->Finish(std::move(status), {});
    task_.reset();
  }

  static constexpr int64_t kHeldBytes = 12'345;
  const PickyKernel picky_{/*reads_pieces=*/false};
  const ReferenceAttention reference_{};
  FakeClock clock_;
  Scratch scratch_;
  v1::AttendRequest request_;
  v1::AttendResponse response_;
  std::weak_ptr<const void> memory_;  // of the pieces
  std::unique_ptr<AttendTask> task_;
  double flop_ = 0;  // of the items that ran
  absl::Status end_ = absl::UnknownError("not yet");
  ComputedRequest effort_;
};

TEST_F(AttendTaskTest, PiecesAreGatheredInAStageOfTheirOwnAndAnswerAlike) {
  const v1::AttendRequest whole = MakeRequest({.batch = 2, .q_len = 3, .kv_len = 400}, 1);
  Make(whole);
  const TaskCost cost_of_whole = task_->cost();
  RunStage();
  EXPECT_EQ(flop_, cost_of_whole.flop);
  EXPECT_FALSE(task_->NextStage());
  Finish(absl::OkStatus());
  const v1::AttendResponse expected = std::exchange(response_, {});
  const double executed = effort_.flop_executed;

  v1::AttendRequest apart = whole;
  std::unique_ptr<KeyValuePieces> pieces = TakeApart(apart);
  const int64_t in_pieces = pieces->key.size() + pieces->value.size();
  Make(apart, std::move(pieces));
  EXPECT_GE(task_->cost().bytes, kHeldBytes + in_pieces) << "both are held while it gathers";
  const double cost = task_->cost().flop;
  flop_ = 0;
  RunStage();
  EXPECT_EQ(response_.output().data().size(), 0u) << "no reply yet";
  EXPECT_FALSE(memory_.expired());
  ASSERT_TRUE(task_->NextStage());
  EXPECT_TRUE(memory_.expired()) << "what has been copied is given back";
  RunStage();
  EXPECT_EQ(flop_, cost);
  EXPECT_FALSE(task_->NextStage());
  Finish(absl::OkStatus());
  EXPECT_TRUE(end_.ok());
  EXPECT_EQ(response_.output().data(), expected.output().data());
  EXPECT_EQ(effort_.flop_executed, executed) << "copies are no FLOP";
}

TEST_F(AttendTaskTest, WhoWaitsOrIsRefusedHasNeitherReplyNorCopy) {
  v1::AttendRequest apart = MakeRequest({.q_len = 3, .kv_len = 400}, 1);
  std::unique_ptr<KeyValuePieces> pieces = TakeApart(apart);
  Make(apart, std::move(pieces));
  EXPECT_FALSE(memory_.expired());
  Finish(absl::CancelledError("gone"));
  EXPECT_TRUE(memory_.expired());
  EXPECT_EQ(response_.output().data().size(), 0u);
  EXPECT_TRUE(absl::IsCancelled(end_));
}

TEST_F(AttendTaskTest, ARequestWithoutItemsHasAnEmptyReply) {
  v1::AttendRequest request = MakeRequest({.q_len = 0}, 1);
  request.set_return_lse(true);
  Make(request);
  EXPECT_EQ(task_->item_count(), 0);
  EXPECT_FALSE(task_->NextStage());
  Finish(absl::OkStatus());
  EXPECT_EQ(response_.output().shape_size(), 4);
  EXPECT_EQ(response_.lse().shape_size(), 3);
}

}  // namespace
}  // namespace triad
