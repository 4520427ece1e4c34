// The padding of a Forward's reply: what neither a product nor a kernel writes, because its rows do not count. It looks
// as if its attention saw nothing: output is the output projection's bias, lse -inf, weights 0.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/scratch.h"
#include "core/layer/forward_problem.h"
#include "core/layer/hosted_layer.h"

namespace triad {

// Where one request's answer goes. Borrowed. Memory in any state, of any alignment: every element is written.
struct ForwardReply {
  std::byte* output = nullptr;  // problem.output_shape
  float* lse = nullptr;         // null unless the problem returns it
  float* weights = nullptr;     // likewise
};

// Empty for a request without padding, PACKED ones above all. Borrows the layer.
class ReplyPadding {
 public:
  enum class Field { kOutput, kLse, kWeights };
  // Some rows of padding of one tensor, numbered without those that count; at most 1 MiB, some 0.1 ms, unless a row is
  // longer.
  struct Item {
    Field field = Field::kOutput;
    int64_t begin = 0;
    int64_t end = 0;
    double flop = 0;  // work that takes as long
  };

  // O(sequences). May throw std::bad_alloc, as Items.
  ReplyPadding(const HostedLayer& layer, const ForwardProblem& problem);

  // Together they write all padding.
  std::vector<Item> Items() const;
  double flop() const;  // of all items

  void Fill(const Item& item, const ForwardReply& reply, Scratch& scratch) const;

 private:
  // Of one sequence: tokens [length, tokens).
  struct Gap {
    int64_t sequence = 0;
    int64_t length = 0;
    int64_t rows = 0;
    int64_t rows_before = 0;  // of the gaps before it
  };
  // A tensor's rows are [batch, heads, tokens]; those of the output have one head.
  struct Rows {
    int64_t heads = 0;  // 0: the tensor is not there
    int64_t row_bytes = 0;
  };

  Rows RowsOf(Field field) const;
  int64_t gap_rows() const { return gaps_.empty() ? 0 : gaps_.back().rows_before + gaps_.back().rows; }
  // Calls visit(int64_t row, int64_t count) for each run of rows of `item` that lie together.
  template <class Visit>
  void ForEachRun(const Item& item, Visit visit) const;
  void FillOutput(const Item& item, std::byte* output, Scratch& scratch) const;

  const HostedLayer& layer_;
  DType dtype_ = DType::kF32;  // of the output
  int64_t tokens_ = 0;         // of each sequence, padding included
  int64_t heads_ = 0;          // of lse and weights
  int64_t columns_ = 0;        // of weights
  bool has_lse_ = false;
  bool has_weights_ = false;
  std::vector<Gap> gaps_;  // in the order of the sequences; none is empty
};

}  // namespace triad
