// What several messages have in common, from the wire to the core without copying a payload.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/attention_request.h"
#include "core/batching/task.h"
#include "core/tensor/tensor.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// One tensor. `field` names it in errors. The result borrows `message`. INVALID_ARGUMENT: it does not name its type, or
// its data is not the bytes of its shape. Cost: O(1) in the payload.
//
// `pieces`, where not null nor empty, is its data, and is borrowed too.
absl::StatusOr<TensorView> DecodeTensor(absl::string_view field, const v1::Tensor& message,
                                        const Pieces* pieces = nullptr);

struct RequiredTensor {
  absl::string_view field;
  bool is_given = false;
  const v1::Tensor& message;
  TensorView& view;  // set
  const Pieces* pieces = nullptr;
};
// As DecodeTensor; INVALID_ARGUMENT also when one is not given.
absl::Status DecodeRequiredTensors(std::initializer_list<RequiredTensor> tensors);

struct OptionalTensor {
  absl::string_view field;
  bool is_given = false;
  const v1::Tensor& message;
  std::optional<TensorView>& view;  // set when given
};
absl::Status DecodeOptionalTensors(std::initializer_list<OptionalTensor> tensors);

struct OptionalLengths {
  absl::string_view field;
  bool is_given = false;
  const v1::Lengths& message;
  std::optional<std::vector<int64_t>>& lengths;  // set when given
};
// INVALID_ARGUMENT: one has more entries than `max_batch`.
absl::Status DecodeLengths(std::initializer_list<OptionalLengths> fields, int64_t max_batch);

// Unknown values have been refused before (CheckNothingUnknown); unspecified is the contract's default.
Layout DecodeLayout(v1::Layout layout);
Priority DecodePriority(v1::Priority priority);

}  // namespace triad
