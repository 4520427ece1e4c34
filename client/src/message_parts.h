// A message on its way to the wire: what the generated API serialises, and tensors whose bytes it never sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "triad/tensor.h"

namespace triad::client {

// The bytes that a message serialises to, in pieces: bytes of its own, between which the data of tensors goes. A parser
// sees what it would see had the generated API serialised the whole; only the order of the fields is another one, which
// protobuf leaves open (protobuf.dev/programming-guides/encoding, "Order").
class MessageParts {
 public:
  // Where data goes: `tensor`'s, after the first `at` bytes of own_bytes().
  struct Insertion {
    size_t at = 0;
    const TensorView* tensor = nullptr;
  };
  static constexpr size_t kMostTensors = 5;  // of one request

  // `message` without the tensors. If it has 2 GiB or more, nothing is serialised: byte_size() tells that it is no
  // message to be sent.
  explicit MessageParts(const google::protobuf::MessageLite& message);

  // Adds the field `number`, which is a triad.v1.Tensor. Borrows `tensor`.
  void AddTensor(int number, const TensorView& tensor);

  // Makes all this the field `number` of `envelope`, whose other fields go first.
  void WrapIn(const google::protobuf::MessageLite& envelope, int number);

  // Exactly what all of it takes on the wire, tensors included.
  int64_t byte_size() const { return byte_size_; }

  absl::string_view own_bytes() const { return own_bytes_; }
  // In the order of the wire.
  const absl::InlinedVector<Insertion, kMostTensors>& insertions() const { return insertions_; }

 private:
  std::string own_bytes_;
  absl::InlinedVector<Insertion, kMostTensors> insertions_;
  int64_t byte_size_;
};

}  // namespace triad::client
