// The contract of every kernel: a problem becomes independent work items; any thread computes any item.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/attention/attention_problem.h"
#include "core/attention/split_rows.h"
#include "core/base/scratch.h"

namespace triad {

class AttentionKernel;

// Rows [row_begin, row_end) of one (sequence, kv head), or of each of some kv heads, the first one's first. Rows fold
// the queries that share a kv head, query-major: row r is query r / group of head kv_head * group + r % group. Items of
// a problem write disjoint outputs.
struct WorkItem {
  int64_t sequence = 0;
  int64_t kv_head = 0;
  int64_t kv_heads = 1;  // from kv_head on
  int64_t row_begin = 0;
  int64_t row_end = 0;
  double flop = 0;  // that will be executed, padding of tiles included
  double cost = 0;  // its time, in flop of long products (item_cost.h)
  // Set where the keys of these rows are computed in parts: this item computes one of them, and the part that is
  // ready last writes the outputs.
  std::shared_ptr<SplitRows> split;
  int64_t part = 0;
  // Who computes it, where that is not the kernel that planned it.
  const AttentionKernel* kernel = nullptr;

  int64_t rows_of_head() const { return row_end - row_begin; }
};

class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;

  // "reference", "fused", "onednn".
  virtual absl::string_view name() const = 0;

  // Splits `problem` so that its items together write every element of the outputs: rows past query_length too, and
  // sequences without keys. How it splits depends on the problem alone, never on threads or load: bytes must not.
  virtual std::vector<WorkItem> Plan(const AttentionProblem& problem) const = 0;

  // Whether keys and values of `problem` may lie in pieces; else they are gathered before it is run.
  virtual bool ReadsPieces(const AttentionProblem&) const { return false; }

  // Computes one item of Plan(problem). Thread-safe; `scratch` is the calling thread's, and is Reset here.
  // INTERNAL: a foreign library failed. Blocks for as long as the work takes.
  virtual absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                           Scratch& scratch) const = 0;
};

// Runs all items on the calling thread. For tests, benches and whoever wants attention without a server.
absl::Status RunAll(const AttentionKernel& kernel, const AttentionProblem& problem, const AttentionOutputs& outputs,
                    Scratch& scratch);

}  // namespace triad
