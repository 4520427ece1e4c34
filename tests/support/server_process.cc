#include "tests/support/server_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "tests/support/server_fixture.h"

namespace triad {
namespace {

// The word after `begin` in `line`; empty when it is not there.
std::string WordAfter(absl::string_view line, absl::string_view begin) {
  const size_t at = line.find(begin);
  if (at == absl::string_view::npos) return "";
  line.remove_prefix(at + begin.size());
  return std::string(line.substr(0, line.find_first_of(" \n")));
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& flags) {
  int ends[2] = {};
  TRIAD_CHECK(pipe2(ends, O_CLOEXEC) == 0, "there is a pipe");
  log_ = ends[0];
  std::vector<std::string> arguments = {TRIAD_SERVER_BINARY, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
                                        "--threads=2", "--demo_layer=false"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  process_ = std::make_unique<ChildProcess>(arguments, /*error_file=*/ends[1]);
  close(ends[1]);
  // The line of gRPC's address comes last and promises that the server is ready (Server::Impl::LogStart). What is
  // logged later stays in the pipe: a few lines.
  std::string line, lines;
  for (char byte = 0; target_.empty();) {
    const bool is_running = read(log_, &byte, 1) == 1;
    if (!is_running) std::fputs(lines.c_str(), stderr);
    TRIAD_CHECK(is_running, "the server starts");
    line.push_back(byte);
    if (byte != '\n') continue;
    std::string address = WordAfter(line, "listening on ");
    (address.rfind("http://", 0) == 0 ? http_address_ : target_) = address;
    lines += std::exchange(line, "");
  }
  http_address_ = WordAfter(http_address_, "http://");
}

ServerProcess::~ServerProcess() {
  process_.reset();
  close(log_);
}

std::shared_ptr<grpc::Channel> ServerProcess::NewChannel() const { return OpenChannel(target_); }

void ServerProcess::BeginStop() {
  is_stopping_ = true;
  kill(process_->pid(), SIGTERM);
}

// A second SIGTERM would end the process at once.
int ServerProcess::Stop() { return process_->End(is_stopping_ ? /*signal=*/0 : SIGTERM); }

int64_t ServerProcess::Threads(const std::string& prefix) const {
  int64_t count = 0;
  std::error_code gone;  // a thread that ends while it is looked at
  for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", process_->pid(), "/task"), gone)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.rfind(prefix, 0) == 0) ++count;
  }
  return count;
}

int64_t ServerProcess::ReadStatus(const std::string& name) const {
  std::ifstream file(absl::StrCat("/proc/", process_->pid(), "/status"));
  for (std::string word; file >> word; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    int64_t value = 0;
    if (word == name && file >> value) return value;
  }
  TRIAD_CHECK(false, "a process has a status");
  return 0;
}

}  // namespace triad
