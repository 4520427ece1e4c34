// What operators see: health, reflection, GetServerInfo, the HTTP pages, and the log.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/cpu.h"
#include "tests/support/raw_connection.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kServiceName[] = "triad.v1.AttentionService";
constexpr char kLayerService[] = "triad.v1.LayerService";

// grpc.health.v1.HealthCheckRequest {service}; its field 1.
std::string HealthRequest(const std::string& service) {
  return service.empty() ? "" : absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
}
// grpc.health.v1.HealthCheckResponse {status}; its field 1.
const std::string kServing("\x08\x01", 2);
const std::string kNotServing("\x08\x02", 2);

TEST(ServerHealthTest, ServesTheServerAndItsServicesAndKnowsNoOther) {
  TestServer server;
  const auto channel = server.NewChannel();
  const std::string check = "/grpc.health.v1.Health/Check";
  EXPECT_EQ(CallRaw(channel, check, HealthRequest("")).message, kServing);
  EXPECT_EQ(CallRaw(channel, check, HealthRequest(kServiceName)).message, kServing);
  EXPECT_EQ(CallRaw(channel, check, HealthRequest(kLayerService)).message, kServing);
  EXPECT_EQ(CallRaw(channel, check, HealthRequest("triad.v1.Other")).status.error_code(), grpc::NOT_FOUND);
}

TEST(ServerHealthTest, WatchTellsWhenTheServerDrains) {
  TestServer server;
  RawCall watch(server.NewChannel(), "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(HealthRequest(kServiceName)));
  EXPECT_EQ(watch.Read(), kServing);
  EXPECT_EQ(server.Page("/readyz").first, 200);
  server.server().BeginDrain();
  EXPECT_EQ(watch.Read(), kNotServing);
  EXPECT_EQ(server.Page("/readyz").first, 503);
  EXPECT_EQ(server.Page("/healthz").first, 200);
  EXPECT_EQ(CallRaw(server.NewChannel(), "/grpc.health.v1.Health/Check", HealthRequest("")).message, kNotServing);
}

TEST(ServerReflectionTest, ListsTheServices) {
  TestServer server;
  RawCall reflection(server.NewChannel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ASSERT_TRUE(reflection.Write("\x3a\x01*"));  // ServerReflectionRequest {list_services = "*"}, its field 7
  EXPECT_THAT(reflection.Read().value_or(""),
              AllOf(HasSubstr(kServiceName), HasSubstr(kLayerService), HasSubstr("grpc.health.v1.Health")));
  reflection.WritesDone();
  EXPECT_TRUE(reflection.Finish().ok());
}

TEST(ServerInfoTest, SaysWhatTheServerIsAndAccepts) {
  ServerOptions options = TestServerOptions();
  options.max_head_dim = 321;
  options.max_queue_time = absl::Seconds(3);
  options.max_in_flight_requests = 100;
  options.max_peer_in_flight_requests = options.max_peer_in_flight_bytes = ServerOptions::kHalfOfAll;
  TestServer server(options);
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(server.NewStub()->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.version(), std::string(ServerVersion()));
  EXPECT_THAT(info.kernel(), testing::StartsWith("fused"));
  EXPECT_EQ(info.threads(), 2);
  EXPECT_NE(info.onednn_version(), "");
  EXPECT_EQ(info.instruction_set(), std::string(Name(DetectInstructionSet())));
  EXPECT_EQ(info.limits().max_head_dim(), 321);
  EXPECT_EQ(info.limits().max_queue_time_ns(), 3'000'000'000);
  EXPECT_EQ(info.limits().max_message_bytes(), options.max_message_bytes);
  EXPECT_EQ(info.limits().max_peer_in_flight_requests(), 50);
  EXPECT_EQ(info.limits().max_peer_in_flight_bytes(), options.max_in_flight_bytes / 2);
  EXPECT_EQ(info.limits().max_head_sequences(), 1 << 20);
  EXPECT_EQ(info.limits().max_layer_weights_bytes(), options.max_layer_weights_bytes);
}

// What a server with these options logs until it serves.
std::string LogOfStart(ServerOptions options) {
  const TemporaryFolder folder;
  options.listen = {absl::StrCat("unix:", (folder.path() / "server.sock").string())};
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const stream = open_memstream(&text, &size);
  Log log(LogFormat::kJson, stream);
  EXPECT_TRUE(Server::Start(options, log).ok());
  std::fclose(stream);
  std::string lines(text, size);
  std::free(text);
  return lines;
}

TEST(ServerLogTest, SaysHowManyThreadsComputeAndWhy) {
  ServerOptions options = TestServerOptions();
  options.threads = 3;
  EXPECT_THAT(LogOfStart(options), HasSubstr(R"("threads":"3","threads_reason":"--threads=3")"));
  options.threads = 0;
  const CpuBudget budget = ReadCpuBudget();
  EXPECT_NE(budget.reason, "");
  EXPECT_THAT(LogOfStart(options), HasSubstr(absl::StrCat(R"("threads":")", budget.threads, R"(","threads_reason":")",
                                                          budget.reason, "\"")));
}

TEST(ServerPagesTest, MetricsAreThereFromTheStart) {
  TestServer server;
  const auto [status, page] = server.Page("/metrics");
  EXPECT_EQ(status, 200);
  for (const char* series : {R"(triad_requests_total{code="OK",method="Attend"} 0)",
                             R"(triad_requests_total{code="UNAVAILABLE",method="AttendStream"} 0)",
                             R"(triad_requests_total{code="OK",method="Forward"} 0)",
                             R"(triad_requests_total{code="NOT_FOUND",method="ForwardStream"} 0)",
                             R"(triad_requests_total{code="PERMISSION_DENIED",method="LoadLayer"} 0)",
                             R"(triad_requests_total{code="OK",method="UnloadLayer"} 0)",
                             R"(triad_requests_total{code="OK",method="ListLayers"} 0)",
                             R"(triad_requests_total{code="OK",method="GetLayer"} 0)",
                             "triad_loaded_layers 0",
                             "triad_layer_weights_bytes 0",
                             "triad_forward_batch_requests_count 0",
                             "triad_forward_batch_tokens_count 0",
                             R"(triad_refusals_total{reason="queue_time"} 0)",
                             R"(triad_refusals_total{reason="would_be_late"} 0)",
                             R"(triad_refusals_total{reason="peer"} 0)",
                             "triad_in_flight_peers 0",
                             "triad_request_seconds_count 0",
                             "triad_queue_seconds_count 0",
                             "triad_compute_seconds_count 0",
                             "triad_reply_seconds_count 0",
                             "triad_queued_requests 0",
                             "triad_in_flight_bytes 0",
                             "triad_flop_needed_total 0",
                             "triad_open_streams 0",
                             "triad_build_info{",
                             "process_cpu_seconds_total",
                             "process_resident_memory_bytes"}) {
    EXPECT_THAT(page, HasSubstr(series));
  }
}

TEST(ServerPagesTest, MetricsCountCalls) {
  TestServer server;
  auto stub = server.NewStub();
  const v1::AttendRequest good = MakeRequest({.q_len = 16, .kv_len = 16, .heads = 2, .kv_heads = 2, .head_dim = 8}, 1);
  v1::AttendResponse response;
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Attend(&context, good, &response).ok());
  }
  grpc::ClientContext context;
  EXPECT_FALSE(stub->Attend(&context, {}, &response).ok());
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="OK",method="Attend"})"), 3);
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="INVALID_ARGUMENT",method="Attend"})"), 1);
  EXPECT_EQ(server.Metric("triad_request_seconds_count"), 4);
  EXPECT_EQ(server.Metric("triad_compute_seconds_count"), 3);
  while (server.Metric("triad_reply_seconds_count") < 4) std::this_thread::yield();  // counted after the reply has left
  EXPECT_EQ(server.Metric("triad_request_bytes_total"), 3.0 * static_cast<double>(good.ByteSizeLong()));
  // 2 * (8 + 8) for each of 16 * 16 pairs and 2 heads.
  EXPECT_EQ(server.Metric("triad_flop_needed_total"), 3.0 * 32 * 256 * 2);
  EXPECT_GE(server.Metric("triad_flop_executed_total"), 3.0 * 32 * 256 * 2);
}

TEST(ServerPagesTest, ConfigIsTheEffectiveOne) {
  ServerOptions options = TestServerOptions();
  options.max_batch = 77;
  options.max_in_flight_requests = 100;
  options.max_peer_in_flight_requests = ServerOptions::kHalfOfAll;
  TestServer server(options);
  EXPECT_THAT(server.Page("/configz").second, AllOf(HasSubstr("--max_batch=77\n"), HasSubstr("--threads=2\n"),
                                                    HasSubstr("--max_peer_in_flight_requests=50\n")));
}

TEST(ServerPagesTest, ConnectionsThatSayNothingDoNotStarveTheProbe) {
  TestServer server;
  // More than the pages have threads (http_pages.cc).
  constexpr int kSilent = 24;
  std::vector<RawConnection> silent;
  for (int i = 0; i < kSilent; ++i) silent.emplace_back(server.server().http_address());
  EXPECT_EQ(server.Page("/healthz").first, 200);
}

TEST(ServerPagesTest, AnyOtherPathIsNotFound) {
  TestServer server;
  EXPECT_EQ(server.Page("/etc/passwd").first, 404);
  EXPECT_EQ(server.Page("/metrics/../../etc/passwd").first, 404);
  EXPECT_EQ(server.Page("/").first, 404);
}

}  // namespace
}  // namespace triad
