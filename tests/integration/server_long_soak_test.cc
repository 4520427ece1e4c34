#include "tests/integration/server_soak.h"

namespace triad {
namespace {

TEST_P(ServerSoakTest, MemoryAndThreadsStayOverTwoThousandShapes) { Soak(2000); }

INSTANTIATE_TEST_SUITE_P(Kernels, ServerSoakTest, ::testing::Values("fused", "onednn"),
                         [](const auto& kernel) { return kernel.param; });

}  // namespace
}  // namespace triad
