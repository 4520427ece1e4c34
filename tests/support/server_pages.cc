#include "tests/support/server_pages.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/raw_connection.h"

namespace triad {

std::pair<int, std::string> GetPage(const std::string& http_address, const std::string& path) {
  const RawConnection connection(http_address);
  connection.Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
  const std::string reply = connection.ReceiveAll();
  int status = 0;
  static_cast<void>(absl::SimpleAtoi(absl::string_view(reply).substr(std::min<size_t>(9, reply.size()), 3), &status));
  const size_t body = reply.find("\r\n\r\n");
  return {status, body == std::string::npos ? "" : reply.substr(body + 4)};
}

double ReadMetric(const std::string& http_address, const std::string& series) {
  const std::string page = GetPage(http_address, "/metrics").second;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    double value = 0;
    if (line.substr(0, series.size() + 1) == absl::StrCat(series, " ") &&
        absl::SimpleAtod(line.substr(series.size() + 1), &value)) {
      return value;
    }
  }
  return -1;
}

}  // namespace triad
