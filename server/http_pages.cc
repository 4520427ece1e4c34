#include "server/http_pages.h"

#include <CivetServer.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "server/listen_reason.h"

namespace triad {
namespace {

// A page is a scrape or a probe. Connections that say nothing hold a thread each, for at most the timeout: with this
// many a liveness probe still gets through.
const char* const kThreads = "16";
const char* const kRequestTimeoutMs = "2000";

void Send(mg_connection* connection, const HttpPage& page, bool with_body) {
  const std::string head =
      absl::StrCat("HTTP/1.1 ", page.status, " ", mg_get_response_code_text(connection, page.status),
                   "\r\nContent-Type: ", page.content_type, "\r\nContent-Length: ", page.body.size(),
                   "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, page.body.data(), page.body.size());
}

// Serves every path, so that what is not a page is our 404 and not the HTTP server's search for a file.
class Handler final : public CivetHandler {
 public:
  explicit Handler(std::map<std::string, HttpPages::Make> pages) : pages_(std::move(pages)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    Send(connection, Make(connection), /*with_body=*/true);
    return true;
  }
  bool handleHead(CivetServer*, mg_connection* connection) override {
    Send(connection, Make(connection), /*with_body=*/false);
    return true;
  }

 private:
  HttpPage Make(mg_connection* connection) const {
    const char* const path = mg_get_request_info(connection)->local_uri;
    const auto page = pages_.find(path == nullptr ? "" : path);
    if (page == pages_.end()) {
      std::string paths;
      for (const auto& [name, make] : pages_) absl::StrAppend(&paths, " ", name);
      return {.status = 404, .body = absl::StrCat("No such page. There are:", paths, "\n")};
    }
    try {
      return page->second();
    } catch (const std::exception& error) {
      return {.status = 500, .body = absl::StrCat(error.what(), "\n")};
    }
  }

  const std::map<std::string, HttpPages::Make> pages_;
};

}  // namespace

class HttpPages::Impl {
 public:
  Impl(std::string host, const std::vector<std::string>& options, std::map<std::string, Make> pages)
      : host_(std::move(host)), handler_(std::move(pages)), server_(options) {
    server_.addHandler("/", handler_);
  }
  ~Impl() {
    // civetweb looks whether it is to stop when a connection comes, or else every 2 s: so connections come until it
    // has.
    const int port = this->port();
    Mutex mu;
    CondVar closed;
    bool is_closed = false;
    std::thread closing([&] {
      server_.close();
      MutexLock lock(mu);
      is_closed = true;
      closed.Signal();
    });
    {
      MutexLock lock(mu);
      while (!is_closed) {
        Connect(port);
        closed.WaitUntil(mu, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
      }
    }
    closing.join();
  }

  int port() { return server_.getListeningPorts().at(0); }

 private:
  void Connect(int port) const {
    char error[128];
    mg_connection* const connection = mg_connect_client(host_.c_str(), port, /*use_ssl=*/0, error, sizeof(error));
    if (connection != nullptr) mg_close_connection(connection);
  }

  const std::string host_;
  Handler handler_;  // before the server, whose threads use it
  CivetServer server_;
};

absl::StatusOr<std::unique_ptr<HttpPages>> HttpPages::Start(const std::string& address,
                                                            std::map<std::string, Make> pages) {
  const std::vector<std::string> options = {"listening_ports",    address,           "num_threads",       kThreads,
                                            "request_timeout_ms", kRequestTimeoutMs, "enable_keep_alive", "no"};
  try {
    const std::string host = address.substr(0, address.rfind(':'));
    auto impl = std::make_unique<Impl>(host, options, std::move(pages));
    const std::string bound = absl::StrCat(host, ":", impl->port());
    return std::unique_ptr<HttpPages>(new HttpPages(std::move(impl), bound));
  } catch (const std::exception&) {  // whose words are about the library
    const bool lacks_ipv6 = absl::StartsWith(address, "[") && mg_check_feature(MG_FEATURES_IPV6) == 0;
    return absl::InvalidArgumentError(absl::StrCat(
        "--http_listen=", address,
        ": cannot listen there: ", lacks_ipv6 ? "this build's HTTP library has no IPv6" : WhyItCannotListen(address)));
  }
}

HttpPages::HttpPages(std::unique_ptr<Impl> impl, std::string address)
    : impl_(std::move(impl)), address_(std::move(address)) {}
HttpPages::~HttpPages() = default;

}  // namespace triad
