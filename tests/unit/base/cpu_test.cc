#include "core/base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace triad {
namespace {

using ::testing::HasSubstr;

TEST(CpuBudgetTest, TakesWholeCoresOfTheSmallerOfQuotaAndMask) {
  struct Case {
    int affinity_cores;
    double quota_cores;
    int threads;
  };
  for (const Case& c : {Case{64, 0, 64},
                        {64, -1, 64},
                        {64, 1, 1},
                        {64, 1.5, 1},
                        {64, 0.5, 1},
                        {64, 0.01, 1},
                        {64, 2, 2},
                        {64, 2.999, 2},
                        {64, 64, 64},
                        {64, 1000, 64},
                        {2, 1.99, 1},
                        {1, 0, 1},
                        {0, 0, 1},
                        {-1, 0.1, 1}}) {
    EXPECT_EQ(DecideCpuBudget(c.affinity_cores, c.quota_cores).threads, c.threads)
        << c.affinity_cores << " cores, quota " << c.quota_cores;
  }
}

TEST(CpuBudgetTest, SaysWhetherTheQuotaDecided) {
  EXPECT_EQ(DecideCpuBudget(64, 1.5).reason, "cgroup quota 1.50 of 64 cores in the affinity mask");
  EXPECT_EQ(DecideCpuBudget(1, 0).reason, "1 core in the affinity mask");
  EXPECT_EQ(DecideCpuBudget(4, 8).reason, "4 cores in the affinity mask");
}

TEST(CpuBudgetTest, OfThisMachineIsAtLeastOneThread) {
  const CpuBudget budget = ReadCpuBudget();
  EXPECT_GE(budget.threads, 1);
  EXPECT_THAT(budget.reason, HasSubstr("in the affinity mask"));
}

TEST(ParseCpuMaxTest, ReadsQuotaOverPeriodAndTakesAllElseForNone) {
  EXPECT_EQ(ParseCpuMax("150000 100000\n"), 1.5);
  EXPECT_EQ(ParseCpuMax("50000\n 100000\n"), 0.5);
  for (const char* none :
       {"", "max 100000\n", "-1 100000", "150000", "150000 0", "150000 100000 1", "1e5 100000", "a b"}) {
    EXPECT_EQ(ParseCpuMax(none), 0) << none;
  }
}

// A file system of a few files in a directory of its own.
class CgroupQuotaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/cgroup_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  double Quota() const { return ReadCgroupQuota(root_); }

  std::string root_;
};

TEST_F(CgroupQuotaTest, IsNoneWithoutCgroups) { EXPECT_EQ(Quota(), 0); }

TEST_F(CgroupQuotaTest, OfVersionTwoIsTheTightestOfTheGroupAndItsParents) {
  Write("/proc/self/cgroup", "0::/pod/app/worker\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
  Write("/sys/fs/cgroup/pod/app/cpu.max", "250000 100000\n");
  Write("/sys/fs/cgroup/pod/app/worker/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/pod/other/cpu.max", "50000 100000\n");
  EXPECT_EQ(Quota(), 2.5);
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(Quota(), 1);
}

TEST_F(CgroupQuotaTest, OfAContainerThatSeesItsOwnGroupAsTheRootIsFound) {
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  for (const char* group : {"0::/\n", "0::/docker/1f3a\n", "0::/../../docker/1f3a\n"}) {
    Write("/proc/self/cgroup", group);
    EXPECT_EQ(Quota(), 1.5) << group;
  }
}

TEST_F(CgroupQuotaTest, OfVersionOneComesFromTheCpuController) {
  Write("/proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/a\n3:memory:/b\n0::/\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/memory/b/cpu.cfs_quota_us", "100000\n");
  Write("/sys/fs/cgroup/memory/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2);
  Write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Quota(), 0);
}

TEST(InstructionSetTest, HasAName) {
  EXPECT_EQ(Name(InstructionSet::kGeneric), "generic");
  EXPECT_EQ(Name(InstructionSet::kAvx2), "avx2");
  EXPECT_EQ(Name(InstructionSet::kAvx512), "avx512");
  EXPECT_EQ(Name(InstructionSet::kAvx512Bf16), "avx512_bf16");
  EXPECT_EQ(Name(InstructionSet::kAmxBf16), "amx_bf16");
  RecordProperty("instruction_set", std::string(Name(DetectInstructionSet())));
}

}  // namespace
}  // namespace triad
