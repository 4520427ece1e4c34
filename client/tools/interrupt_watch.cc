#include "client/tools/interrupt_watch.h"

#include <semaphore.h>
#include <signal.h>

#include <atomic>

namespace triad::tools {
namespace {

// What the handler touches; of the process, as the handler is. sem_post is allowed in one.
sem_t g_news;
std::atomic<bool> g_interrupted = false;

void OnInterrupt(int) {
  g_interrupted = true;
  sem_post(&g_news);
}

}  // namespace

InterruptWatch::InterruptWatch() {
  g_interrupted = false;
  sem_init(&g_news, /*pshared=*/0, /*value=*/0);
  thread_ = std::thread([this] {
    while (sem_wait(&g_news) != 0) {  // EINTR
    }
    if (g_interrupted) stop_.request_stop();
  });
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // the next one finds the default, which ends the process
  sigaction(SIGINT, &action, nullptr);
}

InterruptWatch::~InterruptWatch() {
  signal(SIGINT, SIG_DFL);
  sem_post(&g_news);
  thread_.join();
  sem_destroy(&g_news);
}

}  // namespace triad::tools
