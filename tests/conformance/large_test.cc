// Tensors of more than 2^31 elements: offsets are 64 bits wide everywhere. The tensors are mapped zero pages with a few
// numbers at their far ends, so that an offset cut to 32 bits reads zeros instead.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/attention/validate_attention.h"
#include "core/base/check.h"
#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

// Maps zero pages that take no memory until they are written.
class ZeroPages {
 public:
  ZeroPages(DType dtype, Shape shape) : bytes_(static_cast<size_t>(TensorBytes(dtype, shape).value())) {
    address_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TRIAD_CHECK(address_ != MAP_FAILED, "there is address space");
    view_ = {.data = data(), .dtype = dtype, .shape = std::move(shape)};
  }
  ~ZeroPages() { munmap(address_, bytes_); }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(address_); }
  const TensorView& view() const { return view_; }
  void Set(int64_t element, float value) { StoreElement(data() + element * ByteSize(view_.dtype), view_.dtype, value); }

 private:
  size_t bytes_;
  void* address_ = nullptr;
  TensorView view_;
};

class LargeTest : public ConformanceTest {
 protected:
  // Output of `request`, whose limits are out of the way.
  std::vector<float> Output(const AttentionRequest& request) const {
    constexpr int64_t kNoLimit = int64_t{1} << 60;
    const AttentionProblem problem = ValidateAttention(request, {.max_tokens_per_request = kNoLimit,
                                                                 .max_head_dim = kNoLimit,
                                                                 .max_weights_bytes = kNoLimit,
                                                                 .max_batch = kNoLimit,
                                                                 .max_message_bytes = kNoLimit})
                                         .value();
    Tensor output = Tensor::Zeros(problem.dtype, problem.output_shape).value();
    Scratch scratch;
    EXPECT_TRUE(RunAll(kernel(), problem, {.output = output.data()}, scratch).ok());
    std::vector<float> values(static_cast<size_t>(output.element_count()));
    for (size_t n = 0; n < values.size(); ++n) {
      values[n] = LoadElement(output.data() + static_cast<int64_t>(n) * ByteSize(problem.dtype), problem.dtype);
    }
    return values;
  }
};

constexpr int64_t kTokens = 4097;
constexpr int64_t kHeads = 4096;
constexpr int64_t kDim = 128;

// 4097 x 4096 x 128 elements each of key and value. The last query sees the last two keys; of the last head they
// differ.
TEST_P(LargeTest, TheLastKeysAndValuesAreFound) {
  ZeroPages query(dtype(), {1, 1, kHeads, kDim});
  ZeroPages key(dtype(), {1, kTokens, kHeads, kDim});
  ZeroPages value(dtype(), {1, kTokens, kHeads, kDim});
  const int64_t end = kTokens * kHeads * kDim;
  query.Set(kHeads * kDim - 1, 1);
  key.Set(end - 1, 2);
  value.Set(end - 1, 3);
  value.Set(end - kHeads * kDim - 1, 5);
  const std::vector<float> output = Output({.query = query.view(),
                                            .key = key.view(),
                                            .value = value.view(),
                                            .scale = 1.0f,
                                            .causal = true,
                                            .alignment = Alignment::kBottomRight,
                                            .window = Window{.left = 1}});
  const double weight = 1 / (1 + std::exp(-2.0));
  EXPECT_NEAR(output.back(), 3 * weight + 5 * (1 - weight), 0.02);
  EXPECT_EQ(std::count(output.begin(), output.end(), 0.0f), kHeads * kDim - 1);
}

// 4097 x 4096 x 128 elements of query. The last two tokens see keys, the very last both of them.
TEST_P(LargeTest, TheLastQueryIsFound) {
  ZeroPages query(dtype(), {1, kTokens, kHeads, kDim});
  ZeroPages key(dtype(), {1, 2, 1, kDim});
  ZeroPages value(dtype(), {1, 2, 1, 1});
  query.Set(kTokens * kHeads * kDim - 1, 1);
  key.Set(2 * kDim - 1, 20);
  value.Set(0, 1);
  value.Set(1, 7);
  const std::vector<float> output = Output({.query = query.view(),
                                            .key = key.view(),
                                            .value = value.view(),
                                            .scale = 1.0f,
                                            .causal = true,
                                            .alignment = Alignment::kBottomRight});
  EXPECT_NEAR(output.back(), 7, 0.05);              // its query picks the second key
  EXPECT_NEAR(output[output.size() - 2], 4, 0.05);  // that of the head before weighs both alike
}

// 4096 x 524416 elements of keep, of which the last two of each head count: the last head keeps its last key, the
// others none.
TEST_P(LargeTest, TheEndOfAMaskIsFound) {
  constexpr int64_t kKeys = kTokens * kDim;
  ZeroPages query(dtype(), {1, 1, kHeads, 1});
  ZeroPages key(dtype(), {1, kKeys, 1, 1});
  ZeroPages value(dtype(), {1, kKeys, 1, 1});
  ZeroPages keep(DType::kBool, {1, kHeads, 1, kKeys});
  value.Set(kKeys - 1, 7);
  keep.data()[kHeads * kKeys - 1] = std::byte{1};
  const std::vector<float> output = Output({.query = query.view(),
                                            .key = key.view(),
                                            .value = value.view(),
                                            .alignment = Alignment::kBottomRight,
                                            .window = Window{.left = 1},
                                            .keep = keep.view()});
  EXPECT_EQ(output.back(), 7);
  EXPECT_EQ(std::count(output.begin(), output.end(), 0.0f), kHeads - 1);
}

INSTANTIATE_TEST_SUITE_P(EveryPath, LargeTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
