#include "core/attention/item_cost.h"

#include <algorithm>

#include "core/attention/fused_geometry.h"
#include "core/attention/row_product.h"

namespace triad {
namespace {

// In flop of long products, of which a Zen 4 core does 109 in a ns; measured there with 1000 queries and keys of one
// dim. A score takes 0.3 ns beside its products, 0.7 more where tanh caps it or its weight is written out, and 0.1 to
// 0.5 where it meets a bias, a mask or a distance.
constexpr double kScore = 32;
constexpr double kCappedScore = 80;
constexpr double kReturnedWeight = 80;
constexpr double kModifiedScore = 32;
// An item takes 0.1 to 0.4 us beside its rows: 10,000 sequences of one token, or as many heads.
constexpr double kItem = 3e4;

double FlopOfScore(const AttentionProblem& problem) {
  double flop = 2 * static_cast<double>(problem.qk_head_dim + problem.v_head_dim) + kScore;
  if (problem.logit_softcap > 0) flop += kCappedScore;
  if (problem.return_weights) flop += kReturnedWeight;
  if (problem.bias || problem.keep || !problem.alibi_slopes.empty()) flop += kModifiedScore;
  return flop;
}

}  // namespace

void SetCosts(const AttentionProblem& problem, std::vector<WorkItem>& items) {
  const double flop_of_products = 2 * static_cast<double>(problem.qk_head_dim + problem.v_head_dim);
  const double share = FlopOfScore(problem) / flop_of_products;
  for (WorkItem& item : items) {
    const int64_t rows = item.rows_of_head();
    // Few rows take as long as memory does; of others, what fills their strips is in the flop.
    const double waiting = rows <= kFewRows ? kLeastSplitRows / static_cast<double>(std::max<int64_t>(rows, 1)) : 1;
    item.cost = item.flop * share * waiting + kItem;
  }
}

}  // namespace triad
