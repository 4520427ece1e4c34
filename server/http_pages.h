// Pages for operators and their machines, on a small HTTP server of its own: GET only, no files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace triad {

struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpPages {
 public:
  // Makes a page when it is asked for. Called on any of the HTTP server's threads, several at once.
  using Make = std::function<HttpPage()>;

  // Listens on `address` (host:port; port 0 picks a free one) and serves `pages` by exact path; any other path is 404.
  // INVALID_ARGUMENT: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpPages>> Start(const std::string& address,
                                                          std::map<std::string, Make> pages);

  // Stops listening; waits for pages being made.
  ~HttpPages();

  // host:port with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  class Impl;
  HttpPages(std::unique_ptr<Impl> impl, std::string address);

  const std::unique_ptr<Impl> impl_;
  const std::string address_;
};

}  // namespace triad
