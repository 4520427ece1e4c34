// One suite for every kernel path: what holds for the reference holds for all of them, in every type.
//
// A file of tests declares a fixture and runs it everywhere:
//   class CausalTest : public ConformanceTest {};
//   INSTANTIATE_TEST_SUITE_P(EveryPath, CausalTest, EveryPathAndType(), PathAndTypeName);
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "gtest/gtest.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_compare.h"
#include "tests/support/attention_content.h"

namespace triad {

// Names of the kernel paths: "reference", "fused", "onednn".
std::vector<std::string> KernelPaths();

// The kernel of a path, made once and kept: primitives are cached in it as they are in a server.
const AttentionKernel& KernelOf(const std::string& path);

using PathAndType = std::tuple<std::string, DType>;

class ConformanceTest : public testing::TestWithParam<PathAndType> {
 protected:
  const AttentionKernel& kernel() const { return KernelOf(std::get<0>(GetParam())); }
  DType dtype() const { return std::get<1>(GetParam()); }

  // `options` in this test's type.
  AttentionContent Content(AttentionOptions options) const {
    options.dtype = dtype();
    return RandomContent(options);
  }
  Answer Attend(const AttentionContent& content) const { return RunContent(kernel(), content); }
  // Computes `content` and judges the answer.
  testing::AssertionResult Agrees(const AttentionContent& content) const {
    return MatchesReference(content, Attend(content));
  }
};

inline auto EveryPathAndType() {
  return testing::Combine(testing::ValuesIn(KernelPaths()), testing::Values(DType::kF32, DType::kBf16, DType::kF16));
}

std::string PathAndTypeName(const testing::TestParamInfo<PathAndType>& tested);

}  // namespace triad
