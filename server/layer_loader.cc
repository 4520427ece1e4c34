#include "server/layer_loader.h"

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/start_thread.h"
#include "server/refuse.h"

namespace triad {
namespace {

absl::Status About(const LayerChoice& choice, const absl::Status& status) {
  return absl::Status(
      status.code(), absl::StrCat("layer ", choice.name, choice.version ? absl::StrCat("@", *choice.version) : "", ": ",
                                  status.message()));
}

class ThreadLoader final : public LayerLoader {
 public:
  ThreadLoader(const LayerLoadLimits& limits, std::unique_ptr<LayerSource> source, LayerStore& store)
      : limits_(limits), source_(std::move(source)), store_(store) {}
  ~ThreadLoader() override {
    BeginDrain();
    if (thread_.joinable()) thread_.join();
  }

  // Once, before anything else. Throws std::system_error.
  void Start() {
    thread_ = StartThread("triad-layers", /*niceness=*/0, [this] { Loop(); });
  }

  absl::StatusOr<LoadedLayer> LoadNow(const LayerChoice& choice) override {
    try {
      absl::StatusOr<LoadedLayer> loaded = Load(choice);
      if (!loaded.ok()) return About(choice, loaded.status());
      return loaded;
    } catch (const std::exception& error) {  // std::bad_alloc: sizes are a file's
      return About(choice, absl::ResourceExhaustedError(absl::StrCat("no memory to load it: ", error.what())));
    }
  }

  absl::Status Submit(LayerChoice choice, Done done) override {
    MutexLock lock(mu_);
    if (is_draining_) return DrainingError();
    const auto loads = static_cast<int64_t>(waiting_.size()) + (running_ ? 1 : 0);
    if (loads >= limits_.max_loads) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--max_layer_loads = ", limits_.max_loads, " loads wait or run"));
    }
    waiting_.push_back({std::move(choice), std::move(done)});
    changed_.Signal();
    return absl::OkStatus();
  }

  void BeginDrain() override {
    std::deque<Waiting> dropped;
    {
      MutexLock lock(mu_);
      is_draining_ = true;
      dropped.swap(waiting_);
      changed_.Signal();
    }
    for (Waiting& load : dropped) load.done(DrainingError());
  }

  bool Abandon() override {
    BeginDrain();
    const Done done = TakeRunning();
    if (!done) return false;
    done(DrainingError());
    return true;
  }

  void Discard(std::shared_ptr<const HostedLayer> share) override {
    MutexLock lock(mu_);
    discarded_.push_back(std::move(share));
    changed_.Signal();
  }

 private:
  struct Waiting {
    LayerChoice choice;
    Done done;
  };

  absl::StatusOr<LoadedLayer> Load(const LayerChoice& choice) {
    // A version that serves needs no folder: it may be built in, or its folder gone.
    if (choice.version) {
      if (absl::StatusOr<LoadedLayer> serving = store_.Find(choice.name, choice.version); serving.ok()) return serving;
    }
    absl::StatusOr<LayerFolder> folder = source_->Find(choice);
    if (!folder.ok()) return folder.status();
    if (absl::StatusOr<LoadedLayer> serving = store_.Find(folder->name, folder->version); serving.ok()) return serving;
    if (absl::Status status = CheckRoom(folder->weights_file_bytes); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<const HostedLayer>> layer = source_->Read(*folder);
    if (!layer.ok()) return layer.status();
    if (absl::Status status = CheckRoom((*layer)->weights_bytes()); !status.ok()) return status;
    LoadedLayer loaded{.name = folder->name, .version = folder->version, .layer = *std::move(layer)};
    store_.Publish(loaded);  // nobody else adds to the store once it serves
    return loaded;
  }

  // Whether weights of `bytes` may join what is loaded. Loads run one at a time, so nothing else joins meanwhile.
  absl::Status CheckRoom(int64_t bytes) const {
    const int64_t loaded = store_.totals().weights_bytes;
    if (limits_.max_weights_bytes == 0 || bytes <= limits_.max_weights_bytes - loaded) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("layers hold ", loaded, " of --max_layer_weights_bytes = ", limits_.max_weights_bytes,
                     ", and this one needs ", bytes, " more: unload one, or raise the flag"));
  }

  void Loop() {
    while (const std::optional<LayerChoice> choice = Next()) {
      absl::StatusOr<LoadedLayer> loaded = LoadNow(*choice);
      // Taken before anyone is told: who hears of this one may ask for the next.
      if (const Done done = TakeRunning()) done(std::move(loaded));
    }
  }

  // Waits for the next load, which runs from here on, and frees what was discarded before it. nullopt: draining.
  std::optional<LayerChoice> Next() {
    for (;;) {
      std::vector<std::shared_ptr<const HostedLayer>> freed;  // without the lock
      MutexLock lock(mu_);
      while (waiting_.empty() && discarded_.empty() && !is_draining_) changed_.Wait(mu_);
      freed.swap(discarded_);
      if (!freed.empty()) continue;
      if (waiting_.empty()) return std::nullopt;
      running_ = std::move(waiting_.front().done);
      LayerChoice choice = std::move(waiting_.front().choice);
      waiting_.pop_front();
      return choice;
    }
  }

  // Whoever takes it calls it. Null: another did.
  Done TakeRunning() {
    MutexLock lock(mu_);
    return std::exchange(running_, nullptr);
  }

  const LayerLoadLimits limits_;
  const std::unique_ptr<LayerSource> source_;
  LayerStore& store_;

  Mutex mu_;  // guards all below but the thread
  CondVar changed_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);  // oldest first
  Done running_ ABSL_GUARDED_BY(mu_);                 // of the load that runs; null: none does, or it was abandoned
  std::vector<std::shared_ptr<const HostedLayer>> discarded_ ABSL_GUARDED_BY(mu_);
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerLoader>> LayerLoader::Create(const LayerLoadLimits& limits,
                                                                 std::unique_ptr<LayerSource> source,
                                                                 LayerStore& store) {
  auto loader = std::make_unique<ThreadLoader>(limits, std::move(source), store);
  try {
    loader->Start();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread for layers: ", error.what()));
  }
  return std::unique_ptr<LayerLoader>(std::move(loader));
}

}  // namespace triad
