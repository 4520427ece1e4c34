// The HTTP pages of a server, as a scraper sees them.
#pragma once

#include <string>
#include <utility>

namespace triad {

// GET of `path` at `http_address` (IPv4 host:port): status code and body.
std::pair<int, std::string> GetPage(const std::string& http_address, const std::string& path);

// Value of a line of /metrics, such as R"(triad_requests_total{code="OK",method="Attend"})"; -1 when there is none.
double ReadMetric(const std::string& http_address, const std::string& series);

}  // namespace triad
