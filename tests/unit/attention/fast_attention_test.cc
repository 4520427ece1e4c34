#include "core/attention/fast_attention.h"

#include "gtest/gtest.h"

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

}  // namespace
}  // namespace triad
