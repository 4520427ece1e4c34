#include "core/attention/attention_problem.h"

#include <algorithm>
#include <cstdlib>

namespace triad {
namespace {

// Sum over i in [0, count) of min(max(i + shift, 0), ceiling), in closed form.
double SumOfClamped(int64_t count, int64_t shift, int64_t ceiling) {
  // i in [rising, flat) adds i + shift, which lies in (0, ceiling); i in [flat, count) adds ceiling; the others
  // nothing.
  const int64_t rising = std::clamp<int64_t>(1 - shift, 0, count);
  const int64_t flat = std::clamp<int64_t>(ceiling - shift, rising, count);
  const double terms = static_cast<double>(flat - rising);
  const double first_plus_last = static_cast<double>(rising + shift) + static_cast<double>(flat - 1 + shift);
  return terms * first_plus_last / 2 + static_cast<double>(count - flat) * static_cast<double>(ceiling);
}

}  // namespace

const std::byte* HeadRows::Bytes(int64_t begin, int64_t count, std::byte* spare) const {
  if (pieces == nullptr) return data + begin;
  if (const std::byte* in_place = pieces->InPlace(begin, count); in_place != nullptr) return in_place;
  pieces->CopyTo(begin, count, spare);
  return spare;
}

KeyRange AttentionProblem::VisibleKeys(const Sequence& sequence, int64_t i) const {
  const int64_t position = i + sequence.query_shift;
  const int64_t reach = sequence.key_length - 1 - position;  // how far after its position the last key lies; may be < 0
  int64_t end = sequence.key_length;
  if (causal) end = std::min(end, position + 1);
  // The windows are compared before they are added to anything: they may be as large as kUnbounded.
  if (window_right < reach) end = std::min(end, position + window_right + 1);
  end = std::max<int64_t>(end, 0);
  const int64_t begin = window_left < position ? position - window_left : 0;
  return {.begin = std::min(begin, end), .end = end};
}

double FlopNeeded(const AttentionProblem& problem) {
  double pairs = 0;
  for (const Sequence& sequence : problem.sequences) {
    const int64_t count = sequence.query_length;
    const int64_t keys = sequence.key_length;
    // A window past every query and key hides nothing; cutting it there keeps the sums below inside int64_t.
    const int64_t all = count + keys + std::abs(sequence.query_shift);
    const int64_t right = problem.causal ? 0 : std::min(problem.window_right, all);
    const int64_t left = std::min(problem.window_left, all);
    // Query i sees keys from clamp(i + shift - left) to clamp(i + shift + right + 1), both clamped to [0, keys].
    pairs += SumOfClamped(count, sequence.query_shift + right + 1, keys) -
             SumOfClamped(count, sequence.query_shift - left, keys);
  }
  const double flop_per_pair = 2.0 * static_cast<double>(problem.qk_head_dim + problem.v_head_dim);
  return pairs * flop_per_pair * static_cast<double>(problem.heads);
}

}  // namespace triad
