// Matrix products of one tile by oneDNN. This header and its source are all that knows of oneDNN: its exceptions, its
// per-thread OpenMP setting and the differences between 2.6 and 3.x stop here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/cpu.h"
#include "core/base/mutex.h"

namespace triad {

// c [m, n] = a [m, k] * b. b is [k, n], or [n, k] when b_transposed. All row-major with the strides given, in elements.
// m, k, n >= 1 (oneDNN 2.6 divides by zero otherwise).
struct MatmulShape {
  int64_t m = 1;
  int64_t k = 1;
  int64_t n = 1;
  int64_t a_stride = 1;
  int64_t b_stride = 1;
  int64_t c_stride = 1;
  bool b_transposed = false;
  bool bf16 = false;  // a and b are bf16, else f32; c is f32 always

  auto operator<=>(const MatmulShape&) const = default;
};

// How oneDNN wants b of a product to lie when it is packed once and used often. Immutable.
class WeightLayout {
 public:
  // The best layout for `shape`, whose strides of b do not count. INTERNAL: oneDNN has no such product.
  static absl::StatusOr<std::shared_ptr<const WeightLayout>> Create(const MatmulShape& shape);
  ~WeightLayout();

  int64_t byte_size() const;

  // Lays b out at `packed`: byte_size() bytes, aligned to 64. `rows` is [n, k], dense, in the type of b. INTERNAL when
  // oneDNN fails.
  absl::Status Pack(const void* rows, std::byte* packed) const;

 private:
  friend class TileMatmul;
  struct Impl;
  explicit WeightLayout(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// A compiled product. Immutable, and shared between threads: each runs it through a MatmulCall of its own.
class TileMatmul {
 public:
  // Takes 0.1 ms and more the first time. With `weights`, b is what WeightLayout::Pack made, and the shape's strides of
  // b do not count; k, n and bf16 are the layout's. INTERNAL: oneDNN has no such product.
  static absl::StatusOr<std::shared_ptr<const TileMatmul>> Create(const MatmulShape& shape,
                                                                  const WeightLayout* weights = nullptr);
  ~TileMatmul();

  // Bytes that each call needs, aligned to 64; often 0.
  int64_t scratchpad_bytes() const;

 private:
  friend class MatmulCall;
  struct Impl;
  explicit TileMatmul(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// One thread's use of a product. Keeps oneDNN's handles between runs, because making them costs as much as a small
// tile.
class MatmulCall {
 public:
  MatmulCall();
  MatmulCall(MatmulCall&&) noexcept;
  MatmulCall& operator=(MatmulCall&&) noexcept;
  ~MatmulCall();

  // `scratchpad` has matmul->scratchpad_bytes() and outlives the call. INTERNAL when oneDNN fails.
  static absl::StatusOr<MatmulCall> Create(std::shared_ptr<const TileMatmul> matmul, std::byte* scratchpad);

  // Runs on the calling thread alone (the OpenMP thread count of that thread becomes 1 for good). INTERNAL when oneDNN
  // fails.
  absl::Status Run(const void* a, const void* b, float* c);

 private:
  struct Impl;
  explicit MatmulCall(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Compiled products by shape. Thread-safe. Bounded: when full it starts anew, and who holds a product keeps it.
class MatmulCache {
 public:
  // Compiles what is not held yet; waits for nobody else who does. Errors as TileMatmul::Create.
  absl::StatusOr<std::shared_ptr<const TileMatmul>> Get(const MatmulShape& shape);

 private:
  // About 60 shapes serve a pair of head dimensions; a few KiB of generated code each. Past so many one of them goes.
  static constexpr size_t kMaxShapes = 2048;

  Mutex mu_;  // guards the products below
  std::map<MatmulShape, std::shared_ptr<const TileMatmul>> products_ ABSL_GUARDED_BY(mu_);
};

// Version of the library at run time: "major.minor.patch".
std::string OneDnnVersion();

// Makes oneDNN's engine. INTERNAL when it cannot.
absl::Status CheckOneDnn();

// Keeps oneDNN below instruction sets past `isa`. Holds for the whole process, and only when called before oneDNN's
// first use; later calls change nothing.
void CapOneDnn(InstructionSet isa);

}  // namespace triad
