#include "tests/integration/server_soak.h"

namespace triad {
namespace {

TEST_P(ServerSoakTest, MemoryAndThreadsStayOverTwoHundredShapes) { Soak(200); }

INSTANTIATE_TEST_SUITE_P(Kernels, ServerSoakTest, ::testing::Values("fused", "onednn"),
                         [](const auto& kernel) { return kernel.param; });

}  // namespace
}  // namespace triad
