#include "server/listen_reason.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/tensor/file_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

TEST(ListenReasonTest, APathIsToldWhatIsWrongWithIt) {
  ASSERT_TRUE(WriteFile(TempPath("file"), {}).ok());
  EXPECT_EQ(WhyItCannotListen("unix:" + TempPath("missing/x")), "No such file or directory");
  EXPECT_EQ(WhyItCannotListen("unix:" + TempPath("file/x")), "Not a directory");
  EXPECT_EQ(WhyItCannotListen("unix:" + TempPath("file")), "Address already in use");
  EXPECT_EQ(WhyItCannotListen("unix:" + TempPath(std::string(200, 'x'))), "File name too long");
}

TEST(ListenReasonTest, APortInUseAndAnAddressOfAnotherMachineAreToldApart) {
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup close_taken = [taken] { close(taken); };
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(taken, reinterpret_cast<const sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&name), &size), 0);
  EXPECT_EQ(WhyItCannotListen(absl::StrCat("127.0.0.1:", ntohs(name.sin_port))), "Address already in use");
  EXPECT_EQ(WhyItCannotListen("192.0.2.1:0"), "Cannot assign requested address");  // RFC 5737: nobody's
}

TEST(ListenReasonTest, WhatCanBeListenedOnIsLeftAsItWas) {
  EXPECT_THAT(WhyItCannotListen("127.0.0.1:0"), HasSubstr("until a moment ago"));
  EXPECT_THAT(WhyItCannotListen("unix:" + TempPath("free")), HasSubstr("until a moment ago"));
  EXPECT_FALSE(std::filesystem::exists(TempPath("free")));
}

}  // namespace
}  // namespace triad
