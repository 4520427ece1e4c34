#include "server/layer_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/server_layers.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Key = std::pair<std::string, int64_t>;

class LayerStoreTest : public ::testing::Test {
 protected:
  bool Publish(const std::string& name, int64_t version) {
    return store_.Publish({.name = name, .version = version, .layer = layer_});
  }
  std::vector<Key> Keys(absl::string_view name = "") const {
    std::vector<Key> keys;
    for (const LoadedLayer& layer : store_.List(name)) keys.emplace_back(layer.name, layer.version);
    return keys;
  }

  std::shared_ptr<const HostedLayer> layer_ = MakeSmallLayer(/*seed=*/1);
  LayerStore store_;
};

TEST_F(LayerStoreTest, FindsTheHighestVersionUnlessOneIsNamed) {
  Publish("a", 2);
  Publish("a", 10);
  Publish("a", 9);
  EXPECT_EQ(store_.Find("a", std::nullopt)->version, 10);
  EXPECT_EQ(store_.Find("a", 9)->version, 9);
  EXPECT_EQ(store_.Find("a", 9)->layer, layer_);
}

TEST_F(LayerStoreTest, NotFoundSaysWhatIsLoaded) {
  EXPECT_THAT(std::string(store_.Find("a", std::nullopt).status().message()), HasSubstr("none"));
  Publish("a", 1);
  Publish("b/c", 7);
  const absl::Status status = store_.Find("b/c", 8).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("\"b/c\" version 8"), HasSubstr("a@1"), HasSubstr("b/c@7")));
}

TEST_F(LayerStoreTest, NotFoundStaysShortHoweverMuchIsLoaded) {
  for (int i = 0; i < 100; ++i) Publish(absl::StrCat("layer", i), 1);
  const std::string message(store_.Find("x", std::nullopt).status().message());
  EXPECT_THAT(message, HasSubstr("and 88 more"));
  EXPECT_LT(message.size(), 400u);
}

TEST_F(LayerStoreTest, ListsByNameThenVersion) {
  Publish("b", 2);
  Publish("a", 10);
  Publish("b", 1);
  Publish("a", 9);
  EXPECT_THAT(Keys(), ElementsAre(Key("a", 9), Key("a", 10), Key("b", 1), Key("b", 2)));
  EXPECT_THAT(Keys("b"), ElementsAre(Key("b", 1), Key("b", 2)));
  EXPECT_THAT(Keys("c"), ElementsAre());
}

TEST_F(LayerStoreTest, PublishKeepsWhatServes) {
  EXPECT_TRUE(Publish("a", 1));
  EXPECT_FALSE(store_.Publish({.name = "a", .version = 1, .layer = MakeSmallLayer(2)}));
  EXPECT_EQ(store_.Find("a", 1)->layer, layer_);
}

TEST_F(LayerStoreTest, RemoveLeavesTheOtherVersionsAndThoseWhoHoldIt) {
  Publish("a", 1);
  Publish("a", 2);
  const LoadedLayer held = *store_.Find("a", 2);
  EXPECT_TRUE(store_.Remove("a", 2).ok());
  EXPECT_EQ(store_.Find("a", std::nullopt)->version, 1);
  EXPECT_TRUE(absl::IsNotFound(store_.Remove("a", 2).status()));
  EXPECT_TRUE(store_.Remove("a", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(store_.Remove("a", 1).status()));
  EXPECT_EQ(held.layer->spec().model_dim, kSmallDim);
}

TEST_F(LayerStoreTest, TheLastHolderFreesALayer) {
  std::weak_ptr<const HostedLayer> watch = layer_;
  Publish("a", 1);
  layer_.reset();
  {
    const LoadedLayer held = *store_.Find("a", 1);
    EXPECT_EQ(*store_.Remove("a", 1), held.layer);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST_F(LayerStoreTest, TotalsCountVersionsAndTheirBytes) {
  EXPECT_EQ(store_.totals().layers, 0);
  Publish("a", 1);
  Publish("a", 2);
  EXPECT_EQ(store_.totals().layers, 2);
  EXPECT_EQ(store_.totals().weights_bytes, 2 * layer_->weights_bytes());
}

TEST_F(LayerStoreTest, TotalsCountTheBytesOfWhatIsRemovedAndStillHeld) {
  const int64_t bytes = layer_->weights_bytes();
  Publish("a", 1);
  EXPECT_TRUE(store_.Remove("a", 1).ok());
  EXPECT_EQ(store_.totals().layers, 0);
  EXPECT_EQ(store_.totals().weights_bytes, bytes);
  layer_ = nullptr;
  EXPECT_EQ(store_.totals().weights_bytes, 0);
}

TEST_F(LayerStoreTest, ServesWhileVersionsComeAndGo) {
  Publish("a", 1);
  std::thread changing([&] {
    for (int i = 0; i < 1000; ++i) {
      Publish("a", 2);
      EXPECT_TRUE(store_.Remove("a", 2).ok());
    }
  });
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(store_.Find("a", std::nullopt).ok());
  changing.join();
  EXPECT_THAT(Keys(), ElementsAre(Key("a", 1)));
}

}  // namespace
}  // namespace triad
