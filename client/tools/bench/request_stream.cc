#include "client/tools/bench/request_stream.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace triad::tools {

RequestStream DrawRequests(const RequestDraw& draw) {
  struct State {
    LengthSampler tokens;
    std::optional<LengthSampler> kv_len;
    Random random;
  };
  auto state = std::make_shared<State>(State{LengthSampler(draw.tokens), std::nullopt, Random(draw.seed)});
  if (draw.kv_len) state->kv_len.emplace(*draw.kv_len);
  return [state] {  // copies of the function go on where the others are
    PlannedRequest request;
    request.tokens = state->tokens.Draw(state->random);
    request.kv_len = state->kv_len ? state->kv_len->Draw(state->random) : request.tokens;
    request.seed = state->random.Next();
    return request;
  };
}

DueTimes PlanDueTimes(ArrivalPlan plan) {
  auto times = std::make_shared<ArrivalTimes>(std::move(plan));
  return [times] { return times->Next(); };
}

RequestStream ReplayRequests(std::shared_ptr<const std::vector<TraceEntry>> entries) {
  return [entries = std::move(entries), next = size_t{0}]() mutable {
    const TraceEntry& entry = (*entries)[next];
    next = (next + 1) % entries->size();
    return entry.request;
  };
}

DueTimes ReplayDueTimes(std::shared_ptr<const std::vector<TraceEntry>> entries) {
  return [entries = std::move(entries), next = size_t{0}]() mutable -> std::optional<Duration> {
    if (next == entries->size()) return std::nullopt;
    return (*entries)[next++].due;
  };
}

PlannedRequest Longest(const RequestDraw& draw) {
  return {.tokens = draw.tokens.high, .kv_len = draw.kv_len ? draw.kv_len->high : draw.tokens.high};
}

PlannedRequest Longest(const std::vector<TraceEntry>& entries) {
  PlannedRequest longest;
  for (const TraceEntry& entry : entries) {
    longest.tokens = std::max(longest.tokens, entry.request.tokens);
    longest.kv_len = std::max(longest.kv_len, entry.request.kv_len);
  }
  return longest;
}

}  // namespace triad::tools
