#include "core/layer/forward_batch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/store_output.h"
#include "core/base/aligned_bytes.h"
#include "core/layer/activation_layout.h"
#include "core/layer/projection.h"
#include "core/layer/projection_plan.h"
#include "core/layer/rotary.h"
#include "core/layer/shared_rows.h"

namespace triad {
namespace {

SharedRows InputRowsOf(const LayerSpec& spec, const std::vector<ForwardMember>& members) {
  SharedRows rows(spec.model_dim, /*stride=*/spec.model_dim);
  for (const ForwardMember& member : members) {
    const ForwardProblem& problem = *member.problem;
    const int64_t bytes = ByteSize(problem.dtype);
    for (const RowRange& range : problem.input_rows) {
      rows.Add({.rows = range.rows,
                .source = problem.input + range.first_row * spec.model_dim * bytes,
                .dtype = problem.dtype,
                .reply = member.reply.output + range.first_row * spec.output_dim * bytes,
                .position = range.position_offset});
    }
  }
  return rows;
}

SharedRows ContextRowsOf(const LayerSpec& spec, const std::vector<ForwardMember>& members) {
  SharedRows rows(spec.context_dim, /*stride=*/spec.context_dim);
  for (const ForwardMember& member : members) {
    const ForwardProblem& problem = *member.problem;
    for (const RowRange& range : problem.context_rows) {
      rows.Add({.rows = range.rows,
                .source = problem.context + range.first_row * spec.context_dim * ByteSize(problem.dtype),
                .dtype = problem.dtype});
    }
  }
  return rows;
}

}  // namespace

class ForwardBatch::Impl {
 public:
  // Throws std::bad_alloc.
  Impl(const HostedLayer& layer, const AttentionKernel& kernel, std::vector<ForwardMember> members);

  absl::Span<const double> item_costs(Stage stage) const { return costs_[static_cast<size_t>(stage)]; }
  double flop() const { return flop_; }
  absl::Status RunItem(Stage stage, int64_t item, Scratch& scratch);

 private:
  // Where the rows of a product go, and what a row meets on the way there.
  struct Destination {
    std::byte* activations = nullptr;  // [rows, stride] of the layer's compute type; null: the replies
    int64_t stride = 0;
    int64_t turned_columns = 0;  // the first so many are turned by the rotary embedding
  };
  struct ProjectionWork {
    const Projection* projection = nullptr;
    const SharedRows* rows = nullptr;
    Destination destination;
    ProjectionItem item;
  };
  struct AttentionWork {
    size_t member = 0;
    WorkItem item;
  };
  struct PaddingWork {
    size_t member = 0;
    ReplyPadding::Item item;
  };
  // Sines and cosines of a tile's rows.
  struct Turns {
    float* cosines = nullptr;  // [rows, pairs]; null: nothing is turned
    float* sines = nullptr;
  };

  int64_t element_bytes() const { return ByteSize(layer_.spec().compute); }
  void AddMixedRows();
  void PlanAttention(size_t member, int64_t first_row, int64_t first_key_row);
  void PlanProducts(const ProjectionWork& work, Stage stage, std::vector<ProjectionWork>& items);
  void PlanPadding(size_t member);

  absl::Status Project(const ProjectionWork& work, Scratch& scratch) const;
  Turns TurnsOf(const ProjectionWork& work, const TileRows& tile, Scratch& scratch) const;
  void Store(const ProjectionWork& work, const TileRows& tile, const ColumnBlock& block, const Turns& turns,
             float* result) const;
  void Turn(const ColumnBlock& block, const Destination& destination, const float* cosines, const float* sines,
            float* row) const;

  const HostedLayer& layer_;
  const AttentionKernel& kernel_;
  const std::vector<ForwardMember> members_;
  const ActivationLayout layout_;
  const SharedRows input_;
  const SharedRows context_;
  SharedRows mixed_;                                // as input_, of the attention's output
  const AlignedBytes query_rows_;                   // [tokens, query_stride]
  const AlignedBytes context_rows_;                 // [context tokens, context_stride]
  const AlignedBytes mixed_rows_;                   // [tokens, mixed_stride]
  std::vector<AttentionProblem> problems_;          // of each member
  std::vector<ProjectionWork> projections_;         // items of stage 1
  std::vector<AttentionWork> attentions_;           // of stage 2
  std::vector<ProjectionWork> outputs_;             // of stage 3, first these
  std::vector<PaddingWork> fills_;                  // then these
  std::vector<ReplyPadding> paddings_;              // of each member
  std::array<std::vector<double>, kStages> costs_;  // of each stage's items
  double flop_ = 0;
};

ForwardBatch::Impl::Impl(const HostedLayer& layer, const AttentionKernel& kernel, std::vector<ForwardMember> members)
    : layer_(layer),
      kernel_(kernel),
      members_(std::move(members)),
      layout_(LayoutOf(layer.spec())),
      input_(InputRowsOf(layer.spec(), members_)),
      context_(ContextRowsOf(layer.spec(), members_)),
      mixed_(layer.spec().mixed_width(), layout_.mixed_stride),
      query_rows_(input_.count() * layout_.query_stride * element_bytes()),
      context_rows_(context_.count() * layout_.context_stride * element_bytes()),
      mixed_rows_(input_.count() * layout_.mixed_stride * element_bytes()) {
  AddMixedRows();
  const Destination query{.activations = query_rows_.data(),
                          .stride = layout_.query_stride,
                          .turned_columns = layer_.rotary() == nullptr ? 0 : layout_.turned_columns()};
  const Destination context{.activations = context_rows_.data(), .stride = layout_.context_stride};
  PlanProducts({.projection = &layer_.query_projection(), .rows = &input_, .destination = query}, Stage::kProjections,
               projections_);
  if (layer_.context_projection() != nullptr) {
    PlanProducts({.projection = layer_.context_projection(), .rows = &context_, .destination = context},
                 Stage::kProjections, projections_);
  }
  int64_t first_row = 0;
  int64_t first_context_row = 0;
  for (size_t m = 0; m < members_.size(); ++m) {
    PlanAttention(m, first_row, layer_.spec().is_cross() ? first_context_row : first_row);
    first_row += members_[m].problem->tokens;
    first_context_row += members_[m].problem->context_tokens;
  }
  PlanProducts({.projection = &layer_.output_projection(), .rows = &mixed_}, Stage::kOutput, outputs_);
  for (size_t m = 0; m < members_.size(); ++m) PlanPadding(m);
}

void ForwardBatch::Impl::AddMixedRows() {
  if (input_.count() == 0) return;
  const LayerSpec& spec = layer_.spec();
  mixed_.Add({.rows = input_.count(), .source = mixed_rows_.data(), .dtype = spec.compute});
  // The columns that no head writes.
  const int64_t rest = layout_.mixed_stride - spec.mixed_width();
  for (int64_t row = 0; rest > 0 && row < input_.count(); ++row) {
    std::memset(mixed_rows_.data() + (row * layout_.mixed_stride + spec.mixed_width()) * element_bytes(), 0,
                static_cast<size_t>(rest * element_bytes()));
  }
}

void ForwardBatch::Impl::PlanAttention(size_t member, int64_t first_row, int64_t first_key_row) {
  const LayerSpec& spec = layer_.spec();
  AttentionProblem problem = members_[member].problem->attention;
  const std::byte* queries = query_rows_.data();
  const std::byte* keys = spec.is_cross() ? context_rows_.data() : queries;
  const int64_t key_stride = spec.is_cross() ? layout_.context_stride : layout_.query_stride;
  problem.query = {.data = queries, .token_stride = layout_.query_stride, .head_stride = layout_.qk_head_stride};
  problem.key = {.data = keys + layout_.key_begin * element_bytes(),
                 .token_stride = key_stride,
                 .head_stride = layout_.qk_head_stride};
  problem.value = {
      .data = keys + layout_.value_begin * element_bytes(), .token_stride = key_stride, .head_stride = spec.v_head_dim};
  problem.output_token_stride = layout_.mixed_stride;
  problem.output_head_stride = spec.v_head_dim;
  for (Sequence& sequence : problem.sequences) {
    sequence.query_begin = (first_row + sequence.query_begin) * layout_.query_stride;
    sequence.key_begin = (first_key_row + sequence.key_begin) * key_stride;
    sequence.value_begin = (first_key_row + sequence.value_begin) * key_stride;
    sequence.output_begin = (first_row + sequence.output_begin) * layout_.mixed_stride;
  }
  for (const WorkItem& item : kernel_.Plan(problem)) {
    attentions_.push_back({.member = member, .item = item});
    costs_[static_cast<size_t>(Stage::kAttention)].push_back(item.cost);
    flop_ += item.flop;
  }
  problems_.push_back(std::move(problem));
}

void ForwardBatch::Impl::PlanProducts(const ProjectionWork& work, Stage stage, std::vector<ProjectionWork>& items) {
  for (const ProjectionItem& item : PlanProjection(*work.projection, work.rows->count())) {
    items.push_back(work);
    items.back().item = item;
    costs_[static_cast<size_t>(stage)].push_back(item.flop);
    flop_ += item.flop;
  }
}

void ForwardBatch::Impl::PlanPadding(size_t member) {
  paddings_.emplace_back(layer_, *members_[member].problem);
  for (const ReplyPadding::Item& item : paddings_.back().Items()) {
    fills_.push_back({.member = member, .item = item});
    costs_[static_cast<size_t>(Stage::kOutput)].push_back(item.flop);
    flop_ += item.flop;
  }
}

absl::Status ForwardBatch::Impl::RunItem(Stage stage, int64_t item, Scratch& scratch) {
  scratch.Reset();
  const auto index = static_cast<size_t>(item);
  if (stage == Stage::kProjections) return Project(projections_[index], scratch);
  if (stage == Stage::kAttention) {
    const AttentionWork& work = attentions_[index];
    const ForwardReply& reply = members_[work.member].reply;
    return kernel_.Run(problems_[work.member], work.item,
                       {.output = mixed_rows_.data(), .lse = reply.lse, .weights = reply.weights}, scratch);
  }
  if (index < outputs_.size()) return Project(outputs_[index], scratch);
  const PaddingWork& work = fills_[index - outputs_.size()];
  paddings_[work.member].Fill(work.item, members_[work.member].reply, scratch);
  return absl::OkStatus();
}

absl::Status ForwardBatch::Impl::Project(const ProjectionWork& work, Scratch& scratch) const {
  const Projection& projection = *work.projection;
  ProjectionCall call(projection, scratch);
  auto* result = scratch.Allocate<float>(kTileRows * projection.blocks()[0].padded_width);
  for (int64_t row = work.item.row_begin; row < work.item.row_end;) {
    const int row_class = NextTileClass(work.item.row_end - row);
    const TileRows tile{.first = row,
                        .count = std::min(kRowClasses[row_class], work.item.row_end - row),
                        .padded_count = kRowClasses[row_class]};
    const std::byte* operand = GatherOperand(*work.rows, tile, projection, scratch);
    const Turns turns = TurnsOf(work, tile, scratch);
    for (int64_t b = work.item.block_begin; b < work.item.block_end; ++b) {
      absl::Status status = call.Multiply(operand, row_class, static_cast<size_t>(b), result);
      if (!status.ok()) return status;
      Store(work, tile, projection.blocks()[b], turns, result);
    }
    row += tile.count;
  }
  return absl::OkStatus();
}

// What the tile's rows are turned by, if the item has columns that are.
ForwardBatch::Impl::Turns ForwardBatch::Impl::TurnsOf(const ProjectionWork& work, const TileRows& tile,
                                                      Scratch& scratch) const {
  if (work.projection->blocks()[work.item.block_begin].begin >= work.destination.turned_columns) return {};
  const RotaryTable& rotary = *layer_.rotary();
  const Turns turns{.cosines = scratch.Allocate<float>(tile.count * rotary.pairs()),
                    .sines = scratch.Allocate<float>(tile.count * rotary.pairs())};
  for (int64_t r = 0; r < tile.count; ++r) {
    const RowSegment& segment = work.rows->SegmentOf(tile.first + r);
    rotary.SinesAndCosines(segment.position + tile.first + r - segment.first, turns.cosines + r * rotary.pairs(),
                           turns.sines + r * rotary.pairs());
  }
  return turns;
}

void ForwardBatch::Impl::Store(const ProjectionWork& work, const TileRows& tile, const ColumnBlock& block,
                               const Turns& turns, float* result) const {
  const Destination& destination = work.destination;
  const float* bias = work.projection->bias() == nullptr ? nullptr : work.projection->bias() + block.begin;
  const bool is_turned = block.begin < destination.turned_columns;
  for (int64_t r = 0; r < tile.count; ++r) {
    float* row = result + r * block.padded_width;
    if (is_turned) {
      for (int64_t i = 0; bias != nullptr && i < block.width; ++i) row[i] += bias[i];
      const int64_t pairs = layer_.rotary()->pairs();
      Turn(block, destination, turns.cosines + r * pairs, turns.sines + r * pairs, row);
    }
    const OutputRow output{.sums = row, .added = is_turned ? nullptr : bias, .dims = block.width};
    if (destination.activations != nullptr) {
      const int64_t element = (tile.first + r) * destination.stride + block.begin;
      StoreOutputRow(output, {.stored = destination.activations + element * element_bytes()}, layer_.spec().compute);
      continue;
    }
    const RowSegment& segment = input_.SegmentOf(tile.first + r);
    const int64_t element = (tile.first + r - segment.first) * layer_.spec().output_dim + block.begin;
    StoreOutputRow(output, {.stored = segment.reply + element * ByteSize(segment.dtype)}, segment.dtype);
  }
}

// Turns what `block` has of the pairs of each head. A block begins at an even column, and so does every head.
void ForwardBatch::Impl::Turn(const ColumnBlock& block, const Destination& destination, const float* cosines,
                              const float* sines, float* row) const {
  const int64_t head_stride = layout_.qk_head_stride;
  const int64_t end = std::min(block.begin + block.width, destination.turned_columns);
  for (int64_t head = block.begin / head_stride * head_stride; head < end; head += head_stride) {
    const int64_t first = std::max<int64_t>(block.begin - head, 0);
    const int64_t last = std::min(layer_.rotary()->dim(), end - head);
    if (first >= last) continue;
    RotatePairs(cosines + first / 2, sines + first / 2, (last - first) / 2, row + head + first - block.begin);
  }
}

ForwardBatch::ForwardBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ForwardBatch::~ForwardBatch() = default;

absl::StatusOr<std::unique_ptr<ForwardBatch>> ForwardBatch::Create(const HostedLayer& layer,
                                                                   const AttentionKernel& kernel,
                                                                   std::vector<ForwardMember> members) {
  int64_t tokens = 0;
  for (const ForwardMember& member : members) tokens += member.problem->tokens;
  try {
    return std::unique_ptr<ForwardBatch>(new ForwardBatch(std::make_unique<Impl>(layer, kernel, std::move(members))));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for the activations of ", tokens, " tokens"));
  }
}

absl::Span<const double> ForwardBatch::item_costs(Stage stage) const { return impl_->item_costs(stage); }

double ForwardBatch::flop() const { return impl_->flop(); }

absl::Status ForwardBatch::RunItem(Stage stage, int64_t item, Scratch& scratch) {
  return impl_->RunItem(stage, item, scratch);
}

double ProjectionFlop(const HostedLayer& layer, const ForwardProblem& problem) {
  const Projection* const context = layer.context_projection();
  return PlannedFlop(layer.query_projection(), problem.tokens) +
         PlannedFlop(layer.output_projection(), problem.tokens) +
         (context == nullptr ? 0 : PlannedFlop(*context, problem.context_tokens)) + ReplyPadding(layer, problem).flop();
}

absl::Status RunForward(const HostedLayer& layer, const AttentionKernel& kernel, const ForwardMember& member,
                        Scratch& scratch) {
  absl::StatusOr<std::unique_ptr<ForwardBatch>> batch = ForwardBatch::Create(layer, kernel, {member});
  if (!batch.ok()) return batch.status();
  for (int stage = 0; stage < ForwardBatch::kStages; ++stage) {
    const auto which = static_cast<ForwardBatch::Stage>(stage);
    const auto count = static_cast<int64_t>((*batch)->item_costs(which).size());
    for (int64_t item = 0; item < count; ++item) {
      if (absl::Status status = (*batch)->RunItem(which, item, scratch); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace triad
