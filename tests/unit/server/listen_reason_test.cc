#include "server/listen_reason.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

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

// Listens on a port of loopback.
class Listener {
 public:
  Listener() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
};

TEST(ListenReasonTest, APortInUseAndAnAddressOfAnotherMachineAreToldApart) {
  const Listener taken;
  EXPECT_EQ(WhyItCannotListen(absl::StrCat("127.0.0.1:", taken.port())), "Address already in use");
  EXPECT_EQ(WhyItCannotListen("192.0.2.1:0"), "Cannot assign requested address");  // RFC 5737: nobody's
}

// What the system reads and the libraries that listen do not.
TEST(ListenReasonTest, AFormThatOnlyTheSystemReadsIsToldWithTheOneToWrite) {
  for (const auto& [form, plain] : {std::pair<std::string, std::string>{"*:0", "0.0.0.0:0"},
                                    {"127.1:0", "127.0.0.1:0"},
                                    {"0x7f000001:0", "127.0.0.1:0"},
                                    {"[127.0.0.1]:0", "127.0.0.1:0"}}) {
    EXPECT_EQ(WhyItCannotListen(form), "the library that listens does not take it in this form; write " + plain);
  }
}

TEST(ListenReasonTest, AnotherAddressOfThisServerIsNamedWhereItsPortIsTheSame) {
  const Listener taken;
  const std::string address = absl::StrCat("127.0.0.1:", taken.port());
  const std::string same_port = absl::StrCat("0.0.0.0:", taken.port());
  EXPECT_EQ(WhyItCannotListen(address, {"unix:/a", "127.0.0.1:0", same_port}),
            "Address already in use; this server was told to listen on " + same_port + " too");
  EXPECT_EQ(WhyItCannotListen(address, {"unix:/a", "127.0.0.1:0"}), "Address already in use");
  EXPECT_EQ(WhyItCannotListen("127.0.0.1:0", {"localhost:0"}), "the address was taken until a moment ago");
  EXPECT_EQ(WhyItCannotListen("127.1:0", {"localhost:0"}), WhyItCannotListen("127.1:0"));
}

TEST(ListenReasonTest, WhatCanBeListenedOnIsLeftAsItWas) {
  EXPECT_THAT(WhyItCannotListen("127.0.0.1:0"), HasSubstr("until a moment ago"));
  EXPECT_THAT(WhyItCannotListen("unix:" + TempPath("free")), HasSubstr("until a moment ago"));
  EXPECT_FALSE(std::filesystem::exists(TempPath("free")));
}

}  // namespace
}  // namespace triad
