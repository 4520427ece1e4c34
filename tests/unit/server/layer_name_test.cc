#include "server/layer_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LayerNameTest, IsSegmentsJoinedBySlashes) {
  for (const char* name : {"minilm/0", "demo", "a.b-c_D9", "a.../b.", "a/b/c/d/e/f/g/h", "-"}) {
    EXPECT_TRUE(CheckLayerName("layer", name).ok()) << name;
  }
}

TEST(LayerNameTest, CannotLeadElsewhere) {
  for (const std::string& name :
       {std::string("../x"), std::string("a/../../x"), std::string("/etc"), std::string("a//b"), std::string("a/"),
        std::string("."), std::string(".."), std::string("a/./b"), std::string("a\\b"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string("a/b/c/d/e/f/g/h/i"), std::string("~x"),
        std::string(kMaxLayerNameBytes + 1, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckLayerName("layer", name))) << name;
  }
}

TEST(LayerNameTest, IsNoFolderThatIsBeingPrepared) {
  for (const char* name : {".staging", "...", "a/.staging", ".a/b", "a/.b/c", ".minilm.import-x7Gq2a"}) {
    const absl::Status status = CheckLayerName("layer", name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("beginning with a dot"), HasSubstr(name)));
  }
}

TEST(LayerNameTest, ARefusalNamesFieldRuleAndValue) {
  EXPECT_THAT(std::string(CheckLayerName("layer", "a/..").message()),
              AllOf(HasSubstr("layer must"), HasSubstr("\"a/..\"")));
  EXPECT_THAT(std::string(CheckLayerName("layer", "").message()), HasSubstr("unset"));
  EXPECT_THAT(std::string(CheckLayerName("layer", "\x01").message()), HasSubstr("\\x01"));
  EXPECT_LT(CheckLayerName("layer", std::string(1 << 20, '/')).message().size(), 200u);
}

TEST(LayerVersionTest, HasOneSpelling) {
  EXPECT_EQ(ParseLayerVersion("1"), 1);
  EXPECT_EQ(ParseLayerVersion("9223372036854775807"), 9223372036854775807);
  for (const char* folder : {"", "0", "-1", "+1", "01", "1 ", " 1", "1.0", "1a", "v1", "9223372036854775808", ".."}) {
    EXPECT_EQ(ParseLayerVersion(folder), std::nullopt) << folder;
  }
}

TEST(LayerVersionTest, IsPositiveOrUnset) {
  EXPECT_TRUE(CheckLayerVersion("version", std::nullopt).ok());
  EXPECT_TRUE(CheckLayerVersion("version", 1).ok());
  EXPECT_THAT(std::string(CheckLayerVersion("version", 0).message()), HasSubstr("was 0"));
  EXPECT_FALSE(CheckLayerVersion("version", -3).ok());
}

TEST(LayerChoiceTest, IsANameAndPerhapsAVersion) {
  const auto plain = ParseLayerChoice("--layers", "minilm/0");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->name, "minilm/0");
  EXPECT_EQ(plain->version, std::nullopt);
  EXPECT_EQ(ParseLayerChoice("--layers", "minilm/0@12")->version, 12);
  for (const char* text : {"minilm@", "minilm@0", "minilm@1@2", "@1", "../x@1", "minilm@latest"}) {
    EXPECT_FALSE(ParseLayerChoice("--layers", text).ok()) << text;
  }
}

}  // namespace
}  // namespace triad
