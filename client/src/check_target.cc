#include "client/src/check_target.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace triad::client {
namespace {

// Of gRPC's resolvers; any other would be part of a host's name.
constexpr absl::string_view kSchemes[] = {
    "unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "vsock:", "xds:", "google-c2p:", "fake:"};

// "443" or, as gRPC allows, the name of a service.
bool IsPort(absl::string_view text) {
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) return true;
  int port = 0;
  return absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

// "host:port" or "[v6]:port"; with `tls` also without a port.
bool IsHostPort(absl::string_view text, bool tls) {
  const auto has_no_place = [](char c) { return c == '/' || c == ',' || !absl::ascii_isgraph(c); };
  if (text.empty() || std::any_of(text.begin(), text.end(), has_no_place)) return false;
  const size_t bracket = text[0] == '[' ? text.find(']') : 0;
  if (bracket == absl::string_view::npos) return false;
  const size_t colon = text.find(':', bracket);
  if (colon == absl::string_view::npos) return tls;
  const bool is_one_colon = text.find(':', colon + 1) == absl::string_view::npos;
  return is_one_colon && colon > 0 && IsPort(text.substr(colon + 1));
}

}  // namespace

absl::Status CheckTarget(const std::string& target, bool tls) {
  const auto leads = [&target](absl::string_view scheme) { return absl::StartsWith(target, scheme); };
  if (std::any_of(std::begin(kSchemes), std::end(kSchemes), leads) || IsHostPort(target, tls)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "target must be one host:port, with an IPv6 host in brackets and a port of 1 to 65535, or unix:path, "
      "or another gRPC target, and no URL; was \"",
      absl::CHexEscape(target), "\""));
}

}  // namespace triad::client
