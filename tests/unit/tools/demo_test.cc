#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/tools/demo/attention_map.h"
#include "client/tools/demo/demo_model.h"
#include "client/tools/demo/http_get.h"
#include "client/tools/demo/run_demo.h"
#include "core/tensor/npy_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DemoModelTest, TheSameSeedGivesTheSameNumbers) {
  const Sentence a = MakeSentence("The bank", 1);
  EXPECT_EQ(a.words, std::vector<std::string>({"The", "bank"}));
  EXPECT_EQ(a.query.size(), static_cast<size_t>(2 * kModelDim));
  EXPECT_EQ(a.hidden.size(), a.query.size());
  EXPECT_EQ(a.value, MakeSentence("The bank", 1).value);
  EXPECT_NE(a.value, MakeSentence("The bank", 2).value);
}

TEST(DemoModelTest, AWordDiffersFromItselfElsewhereByItsPositionAlone) {
  const Sentence sentence = MakeSentence("The the", 1);
  const Sentence other = MakeSentence("bank the", 1);
  const auto second = [](const Sentence& s) { return std::vector<float>(s.key.begin() + kModelDim, s.key.end()); };
  EXPECT_EQ(second(sentence), second(other));
  EXPECT_FALSE(std::equal(sentence.key.begin(), sentence.key.begin() + kModelDim, sentence.key.begin() + kModelDim));
}

TEST(AttentionMapTest, RowsHaveWordsWeightsAndSums) {
  std::ostringstream out;
  PrintAttentionMap({"a", "river"}, std::vector<float>{0.25, 0.75, 1, 0}, out);
  EXPECT_EQ(out.str(),
            "             a  river |    sum\n"
            "a        0.250  0.750 |  1.000\n"
            "river    1.000  0.000 |  1.000\n");
}

TEST(AttentionMapTest, TheLargestDifferenceIsAbsolute) {
  EXPECT_EQ(LargestDifference(std::vector<float>{1, 2}, std::vector<float>{1.5, 0}), 2);
}

TEST(DemoTest, MetricsLeaveOutZerosAndHistograms) {
  EXPECT_EQ(InterestingMetrics("# HELP triad_x y\ntriad_requests_total{method=\"Attend\"} 2\ntriad_open_streams 0\n"
                               "triad_queue_seconds_bucket{le=\"1\"} 2\ntriad_queue_seconds_sum 0.5\n"
                               "triad_queue_seconds_count 2\ntriad_counted_bytes_total 3\nprocess_x 1\n"),
            "  triad_requests_total{method=\"Attend\"} 2\n  triad_counted_bytes_total 3\n");
}

TEST(DemoTest, AsksTwiceAndShowsTheHeadThatWasAskedFor) {
  ToolRun tool;
  ASSERT_TRUE(RunDemo({.target = "t", .http = "", .head = 3}, tool.world()).ok());
  ASSERT_EQ(tool.connection->requests.size(), 2u);
  EXPECT_EQ(tool.connection->requests[0].kernel, client::Kernel::kAuto);
  EXPECT_EQ(tool.connection->requests[1].kernel, client::Kernel::kReference);
  EXPECT_THAT(tool.out.str(), AllOf(HasSubstr("random"), HasSubstr("Head 3"), HasSubstr("river"),
                                    HasSubstr("REFERENCE"), HasSubstr("345 us computed")));
}

TEST(DemoTest, ShowsTheHostedLayerAndWhoSharedIt) {
  ToolRun tool;
  ASSERT_TRUE(RunDemo({.target = "t", .http = ""}, tool.world()).ok());
  ASSERT_EQ(tool.connection->forward_requests.size(), 1u) << "the others go over a stream";
  const client::ForwardRequest& request = tool.connection->forward_requests[0];
  EXPECT_EQ(request.layer, "demo");
  EXPECT_EQ(request.input.shape, client::Shape({1, 7, kModelDim}));
  EXPECT_TRUE(request.return_weights);
  EXPECT_THAT(tool.out.str(),
              AllOf(HasSubstr("Layer demo, version 1, head 0 of 8"),
                    HasSubstr("up to 3 requests (21 tokens) shared their projections"), HasSubstr("are equal")));
}

TEST(DemoTest, RefusesAHeadThatIsNotThere) {
  ToolRun tool;
  const absl::Status status = RunDemo({.head = 8}, tool.world());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--head"));
}

TEST(DemoTest, PassesOnWhyACallFailed) {
  ToolRun tool;
  tool.connection->failure = absl::UnavailableError("gone");
  EXPECT_EQ(RunDemo({}, tool.world()), absl::UnavailableError("gone"));
}

// Answers one connection with `reply`, then closes.
class OneReplyServer {
 public:
  explicit OneReplyServer(std::string reply) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, reply = std::move(reply)] {
      const int peer = accept(listener_, nullptr, nullptr);
      char request[1024];
      EXPECT_GT(recv(peer, request, sizeof(request), 0), 0);
      EXPECT_EQ(send(peer, reply.data(), reply.size(), MSG_NOSIGNAL), static_cast<ssize_t>(reply.size()));
      close(peer);
    });
  }
  ~OneReplyServer() {
    thread_.join();
    close(listener_);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const int listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST(HttpGetTest, GivesTheBodyOfA200) {
  OneReplyServer server("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ntriad_x 1\n");
  const auto body = HttpGet(server.address(), "/metrics");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, "triad_x 1\n");
}

TEST(HttpGetTest, AnythingElseIsUnavailable) {
  for (const char* reply : {"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 200 OK\r\n"}) {
    OneReplyServer server(reply);
    EXPECT_EQ(HttpGet(server.address(), "/metrics").status().code(), absl::StatusCode::kUnavailable) << reply;
  }
  EXPECT_EQ(HttpGet("nowhere", "/").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace triad::tools
