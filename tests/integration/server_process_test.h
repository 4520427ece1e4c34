// A fixture for tests that look at a server from outside: its memory, its threads, how it ends.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/server_process.h"
#include "tests/support/server_raw_call.h"

namespace triad {

inline constexpr int64_t kMiB = int64_t{1} << 20;

class ServerProcessTest : public ::testing::Test {
 protected:
  // Once, first.
  void Start(const std::vector<std::string>& flags = {}) {
    server_ = std::make_unique<ServerProcess>(flags);
    ExpectServes();
    peak_bytes_ = server_->PeakResidentBytes();
  }
  // Whatever a test has done, the next good request is answered and the server ends as it should.
  void TearDown() override {
    ExpectServes();
    EXPECT_EQ(server_->Stop(), 0);
  }

  void ExpectServes() const {
    const grpc::Status status = CallSmallAttend(server_->NewChannel());
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  // The most memory that the server has held, over what a first request takes.
  void ExpectGrewLessThan(int64_t bytes) const {
    const int64_t growth = server_->PeakResidentBytes() - peak_bytes_;
    RecordProperty("growth_mib", std::to_string(growth / kMiB));
    EXPECT_LT(growth, bytes) << growth / kMiB << " MiB";
  }
  const ServerProcess& server() const { return *server_; }

 private:
  std::unique_ptr<ServerProcess> server_;
  int64_t peak_bytes_ = 0;  // after one request
};

}  // namespace triad
