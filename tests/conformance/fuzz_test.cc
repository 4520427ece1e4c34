// Random problems with random options. A failure prints its seed and every option.
#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

class FuzzTest : public ConformanceTest {
 protected:
  testing::AssertionResult SeedAgrees(uint64_t seed) const {
    AttentionContent content = RandomContent(RandomOptions(seed, dtype()));
    PoisonHidden(content);
    return Agrees(content);
  }
};

constexpr uint64_t kProblems = 300;

TEST_P(FuzzTest, RandomProblemsAgree) {
  for (uint64_t seed = 1; seed <= kProblems; ++seed) ASSERT_TRUE(SeedAgrees(seed));
}

INSTANTIATE_TEST_SUITE_P(EveryPath, FuzzTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
