// triad-server: options, start, wait for a signal, drain.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "server/log.h"
#include "server/process_tuning.h"
#include "server/server.h"
#include "server/server_options.h"

namespace {

constexpr int kExitOk = 0;
constexpr int kExitNotAnswered = 1;  // drained by force: some accepted requests were cancelled
constexpr int kExitNotStarted = 2;

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Blocks until SIGTERM or SIGINT. From then on a second one ends the process at once, by the system's default action.
int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  int received = 0;
  sigwait(&signals, &received);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return received;
}

}  // namespace

int main(int argc, char* argv[]) {
  triad::TuneProcess();
  if (const std::optional<std::string> answer = triad::AnswerForHelpFlags(argc, argv)) {
    std::fputs(answer->c_str(), stdout);
    return kExitOk;
  }
  const absl::StatusOr<triad::ServerOptions> options = triad::LoadServerOptions(argc, argv, environ);
  if (!options.ok()) {
    std::fprintf(stderr, "triad-server: %s\n", std::string(options.status().message()).c_str());
    return kExitNotStarted;
  }
  // Before any thread exists, so that every thread inherits it and only sigwait sees these signals. A peer that closes
  // its end must not end the process either.
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  triad::Log log(triad::LogFormatOf(*options), stderr);
  absl::StatusOr<std::unique_ptr<triad::Server>> server = triad::Server::Start(*options, log);
  if (!server.ok()) {
    log.Error("cannot start", {{"reason", std::string(server.status().message())}});
    return kExitNotStarted;
  }
  const int received = WaitForStopSignal();
  log.Info("signal", {{"name", received == SIGTERM ? "SIGTERM" : "SIGINT"}});
  // Everyone has been answered and everything logged; the system takes the rest back at once. Destructors might wait:
  // for a load of a layer (server.h), and in gRPC some 10 s for a client that keeps its channel open.
  std::_Exit((*server)->Drain() ? kExitOk : kExitNotAnswered);
}
