#include "server/layer_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every name has versions 1 to 3; reading passes a gate, and then ends as the test says.
class FakeSource final : public LayerSource {
 public:
  absl::StatusOr<LayerFolder> Find(const LayerChoice& choice) override {
    if (choice.version.value_or(1) > 3) return absl::NotFoundError("there is no such folder");
    return LayerFolder{.name = choice.name, .version = choice.version.value_or(3), .weights_file_bytes = file_bytes};
  }
  absl::StatusOr<std::shared_ptr<const HostedLayer>> Read(const LayerFolder& folder) override {
    reads.push_back(absl::StrCat(folder.name, "@", folder.version));
    gate.Pass();
    if (on_read) on_read();
    if (!status.ok()) return status;
    return layer;
  }

  Gate gate;
  int64_t file_bytes = 0;
  absl::Status status;
  std::function<void()> on_read;
  std::vector<std::string> reads;  // of the loader's thread, which a test has heard of through a done
  std::shared_ptr<const HostedLayer> layer = MakeSmallLayer(/*seed=*/1);
};

class LayerLoaderTest : public ::testing::Test {
 protected:
  void Start(const LayerLoadLimits& limits = {}) {
    auto source = std::make_unique<FakeSource>();
    source_ = source.get();
    loader_ = *LayerLoader::Create(limits, std::move(source), store_);
  }
  // The end of a load that must be accepted.
  std::future<absl::StatusOr<LoadedLayer>> Load(LayerChoice choice) {
    auto end = std::make_shared<std::promise<absl::StatusOr<LoadedLayer>>>();
    const absl::Status status = loader_->Submit(
        std::move(choice), [end](absl::StatusOr<LoadedLayer> loaded) { end->set_value(std::move(loaded)); });
    EXPECT_TRUE(status.ok()) << status;
    return end->get_future();
  }
  absl::Status Refused(LayerChoice choice) {
    return loader_->Submit(std::move(choice), [](absl::StatusOr<LoadedLayer>) { ADD_FAILURE() << "was refused"; });
  }

  LayerStore store_;
  std::unique_ptr<LayerLoader> loader_;
  FakeSource* source_ = nullptr;  // loader_'s
};

TEST_F(LayerLoaderTest, PublishesWhatWasLoaded) {
  Start();
  const absl::StatusOr<LoadedLayer> loaded = Load({"a"}).get();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->version, 3);
  EXPECT_EQ(store_.Find("a", 3)->layer, source_->layer);
}

TEST_F(LayerLoaderTest, ServesNothingBeforeItIsWhole) {
  Start();
  source_->gate.Close();
  auto end = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  EXPECT_THAT(store_.List(), IsEmpty());
  source_->gate.Open();
  EXPECT_TRUE(end.get().ok());
  EXPECT_EQ(store_.List().size(), 1u);
}

TEST_F(LayerLoaderTest, AVersionThatServesIsNotReadAgain) {
  Start();
  EXPECT_TRUE(Load({"a", 3}).get().ok());
  EXPECT_EQ(Load({"a"}).get()->layer, source_->layer);
  EXPECT_TRUE(Load({"a", 3}).get().ok());
  EXPECT_THAT(source_->reads, ElementsAre("a@3"));
}

TEST_F(LayerLoaderTest, AFailureIsToldWithTheNameAndLeavesWhatServed) {
  Start();
  EXPECT_TRUE(Load({"a", 1}).get().ok());
  source_->status = absl::FailedPreconditionError("q.weight must be finite");
  const absl::Status status = Load({"a", 2}).get().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("a@2"), HasSubstr("q.weight must be finite")));
  EXPECT_EQ(store_.Find("a", std::nullopt)->version, 1);
  EXPECT_TRUE(absl::IsNotFound(Load({"a", 4}).get().status()));
}

TEST_F(LayerLoaderTest, NoMemoryIsAnErrorOfTheLoadAlone) {
  Start();
  source_->on_read = [] { throw std::bad_alloc(); };
  EXPECT_TRUE(absl::IsResourceExhausted(Load({"a", 1}).get().status()));
  source_->on_read = nullptr;
  EXPECT_TRUE(Load({"a", 1}).get().ok());
}

TEST_F(LayerLoaderTest, LoadsOneAtATimeInOrder) {
  Start();
  source_->gate.Close();
  auto a = Load({"a", 1});
  auto b = Load({"b", 1});
  auto c = Load({"c", 1});
  source_->gate.AwaitArrivals(1);
  source_->on_read = [this] {
    EXPECT_EQ(store_.List().size() + 1, source_->reads.size()) << "those before are published";
  };
  source_->gate.Open();
  for (auto* end : {&a, &b, &c}) EXPECT_TRUE(end->get().ok());
  EXPECT_THAT(source_->reads, ElementsAre("a@1", "b@1", "c@1"));
}

TEST_F(LayerLoaderTest, RefusesAtTheBoundAndTakesMoreAfterwards) {
  Start({.max_loads = 2});
  source_->gate.Close();
  auto a = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  auto b = Load({"b", 1});
  const absl::Status refused = Refused({"c", 1});
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--max_layer_loads = 2"));
  source_->gate.Open();
  EXPECT_TRUE(a.get().ok());
  EXPECT_TRUE(b.get().ok());
  EXPECT_TRUE(Load({"c", 1}).get().ok());
}

class LayerWeightsBoundTest : public LayerLoaderTest {
 protected:
  static int64_t LayerBytes() { return MakeSmallLayer(/*seed=*/1)->weights_bytes(); }
  // Loads `choice`, each time a layer of its own.
  absl::Status LoadOwn(LayerChoice choice) {
    source_->layer = MakeSmallLayer(/*seed=*/1);
    const absl::Status status = Load(std::move(choice)).get().status();
    source_->layer = nullptr;
    return status;
  }
  void ExpectNoRoom(const absl::Status& status, const std::string& words) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("--max_layer_weights_bytes = "), HasSubstr(words)));
  }
};

TEST_F(LayerWeightsBoundTest, AFileThatCannotFitIsNotRead) {
  Start({.max_weights_bytes = 2 * LayerBytes()});
  EXPECT_TRUE(LoadOwn({"a", 1}).ok());
  source_->file_bytes = LayerBytes() + 1;
  ExpectNoRoom(LoadOwn({"a", 2}), absl::StrCat("a@2: layers hold ", LayerBytes()));
  EXPECT_THAT(source_->reads, ElementsAre("a@1"));
  source_->file_bytes = LayerBytes();
  EXPECT_TRUE(LoadOwn({"a", 2}).ok());
}

TEST_F(LayerWeightsBoundTest, WhatWasPackedLargerThanItsFileDoesNotServe) {
  Start({.max_weights_bytes = 2 * LayerBytes() - 1});
  EXPECT_TRUE(LoadOwn({"a", 1}).ok());
  ExpectNoRoom(LoadOwn({"a", 2}), absl::StrCat("needs ", LayerBytes(), " more"));
  EXPECT_EQ(store_.totals().weights_bytes, LayerBytes());
  EXPECT_EQ(store_.Find("a", std::nullopt)->version, 1);
}

TEST_F(LayerWeightsBoundTest, AnUnloadedLayerCountsUntilItsLastHolderLetsGo) {
  Start({.max_weights_bytes = LayerBytes()});
  EXPECT_TRUE(LoadOwn({"a", 1}).ok());
  std::shared_ptr<const HostedLayer> held = *store_.Remove("a", 1);
  ExpectNoRoom(LoadOwn({"a", 2}), "unload one");
  held = nullptr;
  EXPECT_TRUE(LoadOwn({"a", 2}).ok());
}

TEST_F(LayerWeightsBoundTest, WhatWasDiscardedIsFreedBeforeTheNextLoad) {
  Start({.max_weights_bytes = LayerBytes()});
  EXPECT_TRUE(LoadOwn({"a", 1}).ok());
  loader_->Discard(*store_.Remove("a", 1));
  EXPECT_TRUE(LoadOwn({"a", 2}).ok());
}

TEST_F(LayerWeightsBoundTest, AppliesAtTheStartAndToNothingWithoutALimit) {
  Start({.max_weights_bytes = LayerBytes() - 1});
  ExpectNoRoom(loader_->LoadNow({"a", 1}).status(), "layer a@1: layers hold 0");
  Start({.max_weights_bytes = 0});
  source_->file_bytes = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(LoadOwn({"a", 1}).ok());
}

TEST_F(LayerLoaderTest, WhoeverHearsOfAnEndMayAskForTheNext) {
  Start({.max_loads = 1});
  std::promise<absl::Status> next;
  auto first = loader_->Submit({"a", 1}, [&](absl::StatusOr<LoadedLayer>) {
    next.set_value(loader_->Submit({"b", 1}, [](absl::StatusOr<LoadedLayer>) {}));
  });
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(next.get_future().get().ok());
}

TEST_F(LayerLoaderTest, ADrainEndsWhatWaitsAndLetsTheRunningOneFinish) {
  Start();
  source_->gate.Close();
  auto running = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  auto waiting = Load({"b", 1});
  loader_->BeginDrain();
  EXPECT_TRUE(absl::IsUnavailable(waiting.get().status()));
  EXPECT_TRUE(absl::IsUnavailable(Refused({"c", 1})));
  source_->gate.Open();
  EXPECT_TRUE(running.get().ok());
}

TEST_F(LayerLoaderTest, AnAbandonedLoadIsAnsweredAtOnceAndOnlyOnce) {
  Start();
  source_->gate.Close();
  auto running = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  auto waiting = Load({"b", 1});
  EXPECT_TRUE(loader_->Abandon());
  EXPECT_TRUE(absl::IsUnavailable(running.get().status()));
  EXPECT_TRUE(absl::IsUnavailable(waiting.get().status()));
  EXPECT_FALSE(loader_->Abandon()) << "nobody is left to tell";
  EXPECT_TRUE(absl::IsUnavailable(Refused({"c", 1})));
  source_->gate.Open();
  loader_.reset();  // a second answer would throw from its promise
}

TEST_F(LayerLoaderTest, WithoutALoadThereIsNothingToAbandon) {
  Start();
  EXPECT_TRUE(Load({"a", 1}).get().ok());
  EXPECT_FALSE(loader_->Abandon());
}

TEST_F(LayerLoaderTest, FreesWhatIsDiscardedOnItsThreadBeforeTheNextLoad) {
  Start();
  source_->gate.Close();
  auto running = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  std::thread::id freed_by;  // written by the loader's thread before b's end
  loader_->Discard({source_->layer.get(), [&](const HostedLayer*) { freed_by = std::this_thread::get_id(); }});
  EXPECT_EQ(freed_by, std::thread::id()) << "the loader is busy";
  auto next = Load({"b", 1});
  source_->gate.Open();
  EXPECT_TRUE(next.get().ok());
  EXPECT_NE(freed_by, std::thread::id());
  EXPECT_NE(freed_by, std::this_thread::get_id());
}

TEST_F(LayerLoaderTest, FreesWhatIsDiscardedWhileItDrainsAtTheLatestAtItsEnd) {
  Start();
  loader_->BeginDrain();
  bool is_freed = false;
  loader_->Discard({source_->layer.get(), [&](const HostedLayer*) { is_freed = true; }});
  loader_.reset();
  EXPECT_TRUE(is_freed);
}

TEST_F(LayerLoaderTest, ItsEndWaitsForTheRunningLoad) {
  Start();
  source_->gate.Close();
  auto running = Load({"a", 1});
  source_->gate.AwaitArrivals(1);
  auto destroyed = std::async(std::launch::async, [this] { loader_.reset(); });
  source_->gate.Open();
  destroyed.get();
  EXPECT_TRUE(running.get().ok());
}

TEST_F(LayerLoaderTest, LoadsAtTheStartOnTheCallersThread) {
  Start();
  EXPECT_EQ(loader_->LoadNow({"a"})->version, 3);
  EXPECT_TRUE(absl::IsNotFound(loader_->LoadNow({"a", 9}).status()));
}

}  // namespace
}  // namespace triad
