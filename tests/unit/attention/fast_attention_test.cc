#include "core/attention/fast_attention.h"

#include "gtest/gtest.h"

namespace triad {
namespace {

TEST(FastAttentionTest, OnlyBf16WhereTheCpuMultipliesItGoesToOneDnn) {
  for (InstructionSet isa : {InstructionSet::kGeneric, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      EXPECT_FALSE(UsesOneDnn(KernelChoice::kAuto, isa, dtype)) << Name(isa) << " " << Name(dtype);
    }
  }
  EXPECT_TRUE(UsesOneDnn(KernelChoice::kAuto, InstructionSet::kAvx512Bf16, DType::kBf16));
  EXPECT_FALSE(UsesOneDnn(KernelChoice::kAuto, InstructionSet::kAvx512Bf16, DType::kF32));
  EXPECT_FALSE(UsesOneDnn(KernelChoice::kAuto, InstructionSet::kAvx512Bf16, DType::kF16));
}

TEST(FastAttentionTest, AChoiceHoldsForEveryType) {
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    EXPECT_FALSE(UsesOneDnn(KernelChoice::kFused, InstructionSet::kAvx512Bf16, dtype));
    EXPECT_TRUE(UsesOneDnn(KernelChoice::kOneDnn, InstructionSet::kGeneric, dtype));
  }
}

TEST(FastAttentionTest, ItsNameSaysWhoComputes) {
  const InstructionSet isa = DetectInstructionSet();
  EXPECT_EQ((*FastAttention::Create(isa, KernelChoice::kFused))->name(), "fused");
  EXPECT_EQ((*FastAttention::Create(isa, KernelChoice::kOneDnn))->name(), "onednn");
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
