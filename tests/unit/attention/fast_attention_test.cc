#include "core/attention/fast_attention.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/validate_attention.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "tests/support/attention_case.h"

namespace triad {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBf16, DType::kF16};

TEST(FastAttentionTest, OnlyBf16PrefillWhereTheCpuHasTilesForItGoesToOneDnn) {
  for (InstructionSet isa : {InstructionSet::kGeneric, InstructionSet::kAvx2, InstructionSet::kAvx512,
                             InstructionSet::kAvx512Bf16, InstructionSet::kAmxBf16}) {
    for (DType dtype : kTypes) {
      EXPECT_FALSE(UsesOneDnn(KernelChoice::kAuto, isa, dtype, /*few_rows=*/true)) << Name(isa) << " " << Name(dtype);
      EXPECT_EQ(UsesOneDnn(KernelChoice::kAuto, isa, dtype, /*few_rows=*/false),
                isa == InstructionSet::kAmxBf16 && dtype == DType::kBf16)
          << Name(isa) << " " << Name(dtype);
    }
  }
}

TEST(FastAttentionTest, AChoiceHoldsForEveryTypeAndShape) {
  for (DType dtype : kTypes) {
    for (bool few_rows : {false, true}) {
      EXPECT_FALSE(UsesOneDnn(KernelChoice::kFused, InstructionSet::kAmxBf16, dtype, few_rows));
      EXPECT_TRUE(UsesOneDnn(KernelChoice::kOneDnn, InstructionSet::kGeneric, dtype, few_rows));
    }
  }
}

TEST(FastAttentionTest, ItsNameSaysWhoComputes) {
  const InstructionSet isa = DetectInstructionSet();
  EXPECT_EQ((*FastAttention::Create(isa, KernelChoice::kFused))->name(), "fused");
  EXPECT_EQ((*FastAttention::Create(isa, KernelChoice::kOneDnn))->name(), "onednn");
}

TEST(FastAttentionTest, OnlyFewRowsAreReadInPieces) {
  const auto fused = FastAttention::Create(DetectInstructionSet(), KernelChoice::kFused);
  const auto reads = [&](int64_t heads, int64_t q_len, int64_t head_dim, int64_t kv_heads = 2) {
    return (*fused)->ReadsPieces({.heads = heads,
                                  .kv_heads = kv_heads,
                                  .qk_head_dim = head_dim,
                                  .v_head_dim = 1,
                                  .sequences = {{.q_len = 1}, {.q_len = q_len}}});
  };
  EXPECT_TRUE(reads(/*heads=*/2, /*q_len=*/4, /*head_dim=*/64));
  EXPECT_TRUE(reads(/*heads=*/8, /*q_len=*/1, /*head_dim=*/64));
  EXPECT_FALSE(reads(/*heads=*/2, /*q_len=*/5, /*head_dim=*/64));
  EXPECT_FALSE(reads(/*heads=*/8, /*q_len=*/2, /*head_dim=*/64));
  EXPECT_TRUE(reads(/*heads=*/64, /*q_len=*/1, /*head_dim=*/128, /*kv_heads=*/64));
  EXPECT_FALSE(reads(/*heads=*/65, /*q_len=*/1, /*head_dim=*/128, /*kv_heads=*/65));  // a token is too wide
  const auto onednn = FastAttention::Create(DetectInstructionSet(), KernelChoice::kOneDnn);
  EXPECT_FALSE((*onednn)->ReadsPieces({.sequences = {{.q_len = 1}}}));
}

TEST(FastAttentionTest, AProcessHasOneInstructionSet) {
  const InstructionSet isa = DetectInstructionSet();
  ASSERT_TRUE(UseInstructionSet(isa).ok());
  const InstructionSet other = isa == InstructionSet::kGeneric ? InstructionSet::kAvx2 : InstructionSet::kGeneric;
  EXPECT_EQ(UseInstructionSet(other).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FastAttention::Create(other).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Bytes that a thread holds after a decode step of 8 heads that are read together, each with a `value` among its
// values.
int64_t ScratchAfterDecode(float value) {
  constexpr int64_t kHeads = 8, kKeys = 100, kDims = 512;
  const Shape one_token = {1, 1, kHeads, kDims};
  const Tensor query = *Tensor::Zeros(DType::kF32, one_token);
  const Tensor key = *Tensor::Zeros(DType::kF32, {1, kKeys, kHeads, kDims});
  Tensor values = *Tensor::CopyFrom(key.view());
  for (int64_t head = 0; head < kHeads; ++head) StoreElement(values.data() + head * kDims * 4, DType::kF32, value);
  AttentionRequest request;
  request.query = query.view();
  request.key = key.view();
  request.value = values.view();
  request.layout = Layout::kTokensHeads;
  request.alignment = Alignment::kBottomRight;
  const AttentionProblem problem = *ValidateAttention(request, AttentionLimits());
  Tensor output = *Tensor::Zeros(DType::kF32, one_token);
  const FusedAttention kernel(DetectInstructionSet());
  Scratch scratch;
  for (const WorkItem& item : kernel.Plan(problem)) {
    EXPECT_EQ(item.kv_heads, kHeads);
    EXPECT_TRUE(kernel.Run(problem, item, {.output = output.data()}, scratch).ok());
  }
  return scratch.capacity_bytes();
}

// To look at all of them for each item, a request of 65,000 sequences took seconds.
TEST(FastAttentionTest, AnItemLooksAtNoSequenceButItsOwn) {
  const auto kernel = FastAttention::Create(DetectInstructionSet());
  const AttentionContent content = RandomContent({.batch = 3, .q_len = 2, .kv_len = 40});
  const AttentionCase attention_case(content);
  Scratch scratch;
  ASSERT_TRUE(RunAll(**kernel, attention_case.problem(), attention_case.outputs(), scratch).ok());
  const std::vector<std::byte> expected = attention_case.OutputBytes();
  attention_case.FillOutputs(std::byte{0x5A});
  for (const WorkItem& item : (*kernel)->Plan(attention_case.problem())) {
    AttentionProblem problem = attention_case.problem();
    for (int64_t s = 0; s < 3; ++s) {
      if (s != item.sequence) problem.sequences[static_cast<size_t>(s)] = {.query_begin = -1, .q_len = 1 << 20};
    }
    ASSERT_TRUE((*kernel)->Run(problem, item, attention_case.outputs(), scratch).ok());
  }
  EXPECT_EQ(attention_case.OutputBytes(), expected);
}

TEST(FusedAttentionTest, AValueThatIsNoNumberLeavesTheThreadNoMoreMemory) {
  EXPECT_EQ(ScratchAfterDecode(std::numeric_limits<float>::quiet_NaN()), ScratchAfterDecode(1));
}

}  // namespace
}  // namespace triad
