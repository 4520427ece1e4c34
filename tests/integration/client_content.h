// Requests of the client library that own what they send, and answers awaited.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "triad/client.h"

namespace triad::client {

// Longer than a test may take: nothing waits for it.
inline constexpr absl::Duration kLong = absl::Minutes(5);

// Normal deviates from `seed`.
inline std::vector<float> Deviates(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Queries, keys and values of [1, tokens, 2, 16].
struct Problem {
  explicit Problem(int64_t tokens)
      : shape({1, tokens, 2, 16}),
        query(Deviates(tokens * 32, 1)),
        key(Deviates(tokens * 32, 2)),
        value(Deviates(tokens * 32, 3)) {}

  AttendRequest Request() const {
    return {.query = TensorView::Float32(query, shape),
            .key = TensorView::Float32(key, shape),
            .value = TensorView::Float32(value, shape)};
  }

  const Shape shape;
  const std::vector<float> query;
  const std::vector<float> key;
  const std::vector<float> value;
};

// An answer that a callback brings.
template <class Response>
class Awaited {
 public:
  std::function<void(absl::StatusOr<Response>)> Callback() {
    return [this](absl::StatusOr<Response> answer) {
      answer_ = std::move(answer);
      arrived_.Notify();
    };
  }
  const absl::StatusOr<Response>& Wait() {
    arrived_.WaitForNotification();
    return answer_;
  }

 private:
  absl::StatusOr<Response> answer_;
  absl::Notification arrived_;
};

}  // namespace triad::client
