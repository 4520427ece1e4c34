#include "core/tensor/safetensors_file.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return absl::StrCat(file, header, data);
}

absl::StatusOr<SafetensorsView> ParseView(const std::string& file) {
  return SafetensorsView::Parse({reinterpret_cast<const std::byte*>(file.data()), file.size()});
}

std::string ViewRefusal(const std::string& file) {
  const absl::StatusOr<SafetensorsView> view = ParseView(file);
  if (view.ok()) return "accepted";
  EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument) << view.status();
  return std::string(view.status().message());
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return absl::StrCat(R"({"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}");
}

const std::string kEightBytes("abcdefgh", 8);

TEST(SafetensorsFileTest, FindsTensorsWhereTheyLie) {
  const std::string file = Bytes(R"({"__metadata__":{"made by":"hand"},"b":)" + Entry("F16", "[2,1]", "[4,8]") +
                                     R"(,"a":)" + Entry("F32", "[]", "[0,4]") + "}   ",
                                 kEightBytes);
  const auto view = ParseView(file);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->names(), ElementsAre("a", "b"));
  EXPECT_EQ(view->metadata().at("made by"), "hand");
  const auto b = view->Find("b");
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->dtype, DType::kF16);
  EXPECT_EQ(b->shape, Shape({2, 1}));
  EXPECT_EQ(std::memcmp(b->data, "efgh", 4), 0);
  EXPECT_EQ(view->Find("a")->rank(), 0);
}

TEST(SafetensorsFileTest, SaysWhichTensorIsMissing) {
  const std::string file = Bytes("{}", "");
  const auto view = ParseView(file);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_FALSE(view->contains("q"));
  EXPECT_EQ(view->Find("q").status(), absl::NotFoundError("no tensor 'q'"));
}

TEST(SafetensorsFileTest, RefusesForeignTypesOnlyWhenTheyAreAskedFor) {
  const std::string file =
      Bytes("{\"a\":" + Entry("I32", "[1]", "[0,4]") + ",\"b\":" + Entry("F4", "[8]", "[4,8]") + "}", kEightBytes);
  const auto view = ParseView(file);
  ASSERT_TRUE(view.ok()) << view.status();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(view->Find(name).status().code(), absl::StatusCode::kUnimplemented);
  }
  EXPECT_THAT(std::string(view->Find("b").status().message()), HasSubstr("'b': type F4 is not supported"));
}

TEST(SafetensorsFileTest, RefusesTensorsThatDoNotFillTheDataExactly) {
  struct Case {
    std::string entries;
    const char* reason;
  };
  for (const Case& c : {
           Case{"\"a\":" + Entry("F32", "[2]", "[0,9]"), "9 bytes do not hold"},
           Case{"\"a\":" + Entry("F32", "[3]", "[0,12]"), "reaches past the end"},
           Case{"\"a\":" + Entry("F32", "[1]", "[0,4]"), "last 4 bytes belong to no tensor"},
           Case{"\"a\":" + Entry("F32", "[1]", "[4,8]"), "leaves a hole"},
           Case{"\"a\":" + Entry("F32", "[2]", "[0,8]") + ",\"b\":" + Entry("F32", "[1]", "[4,8]"),
                "'b': at [4, 8] it overlaps"},
           Case{"\"a\":" + Entry("F32", "[0]", "[8,0]"), "run backwards"},
           Case{"\"a\":" + Entry("X9", "[2]", "[8,0]"), "run backwards"},
           Case{"\"a\":" + Entry("F32", "[4611686018427387904,4]", "[0,8]"), "do not hold shape"},
           Case{"\"a\":" + Entry("F32", "[0,9223372036854775807,3]", "[0,0]"), "do not hold shape"},
       }) {
    EXPECT_THAT(ViewRefusal(Bytes("{" + c.entries + "}", kEightBytes)), HasSubstr(c.reason)) << c.entries;
  }
  EXPECT_THAT(ViewRefusal(Bytes("{}", "x")), HasSubstr("belong to no tensor"));
}

TEST(SafetensorsFileTest, AcceptsEmptyTensorsAnywhere) {
  const std::string file = Bytes("{\"a\":" + Entry("F32", "[0,4]", "[0,0]") + ",\"b\":" + Entry("F32", "[2]", "[0,8]") +
                                     ",\"c\":" + Entry("BOOL", "[0]", "[8,8]") + "}",
                                 kEightBytes);
  EXPECT_TRUE(ParseView(file).ok()) << ViewRefusal(file);
}

TEST(SafetensorsFileTest, RefusesHeadersThatBreakTheFormat) {
  const std::string a = Entry("F32", "[2]", "[0,8]");
  struct Case {
    std::string header;
    const char* reason;
  };
  for (const Case& c : {
           Case{"", "begin with '{'"},
           Case{" {}", "begin with '{'"},
           Case{"[]", "begin with '{'"},
           Case{"{\"a\":" + a + ",\"a\":" + a + "}", "'a': named twice"},
           Case{"{\"a\":" + a + ",\"\\u0061\":" + a + "}", "'a': named twice"},
           Case{R"({"__metadata__":{},"__metadata__":{}})", "named twice"},
           Case{R"({"__metadata__":{"k":"1","k":"2"}})", "'k' given twice"},
           Case{R"({"__metadata__":{"k":1}})", "a number where none belongs"},
           Case{R"({"__metadata__":{"k":{}}})", "an object where none belongs"},
           Case{R"({"a":{"dtype":"F32","dtype":"F32"}})", "'dtype' given twice"},
           Case{R"({"a":{"dtype":"F32","shape":[2]}})", "'a': lacks"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "not two numbers"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", "more than two"},
           Case{R"({"a":{"dtype":"F32","shape":[-2]}})", "'a': the negative number -2"},
           Case{R"({"a":{"dtype":"F32","shape":[2.0]}})", "the fraction 2.0"},
           Case{R"({"a":{"dtype":"F32","shape":[9223372036854775808]}})", "past 2^63"},
           Case{R"({"a":{"dtype":"F32","shape":[null]}})", "null"},
           Case{R"({"a":{"dtype":"F32","shape":true}})", "a boolean"},
           Case{R"({"a":{"dtype":"F32","shape":[[2]]}})", "an array where none belongs"},
           Case{R"({"a":{"dtype":4}})", "a number where none belongs"},
           Case{R"({"a":{"strides":[1]}})", "unknown field 'strides'"},
           Case{R"({"a":"b"})", "a string where none belongs"},
           Case{"{\"a\":" + a, "not JSON"},
           Case{"{\"a\":" + a + "}{}", "not JSON"},
           Case{"{\"\xff\":" + a + "}", "not JSON"},
           Case{"{\"a\":" + a + ",}", "not JSON"},
           Case{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e999]}}", "not JSON"},
       }) {
    EXPECT_THAT(ViewRefusal(Bytes(c.header, kEightBytes)), HasSubstr(c.reason)) << c.header;
  }
}

TEST(SafetensorsFileTest, RefusesDeepNestingWithoutDescending) {
  EXPECT_THAT(ViewRefusal(Bytes("{\"a\":" + std::string(1 << 20, '['), "")), HasSubstr("an array where none belongs"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"shape\":";
  EXPECT_THAT(ViewRefusal(Bytes(objects, "")), HasSubstr("an object where none belongs"));
}

TEST(SafetensorsFileTest, RefusesFilesThatEndEarly) {
  const std::string file = Bytes("{\"a\":" + Entry("F32", "[2]", "[0,8]") + "}", kEightBytes);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseView(file.substr(0, size)).ok()) << "of " << file.size() << " bytes, the first " << size;
  }
  EXPECT_THAT(ViewRefusal(std::string(8, '\xff')), HasSubstr("past the limit"));
}

TEST(SafetensorsFileTest, WhatIsWrittenIsReadBack) {
  const std::string path = TempPath("written.safetensors");
  const std::vector<float> weights = {1, 2, 3};
  const std::vector<uint16_t> halves = {0x3c00};
  const std::vector<uint8_t> flags = {1, 0, 1};
  const auto bytes = [](const auto& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  const std::map<std::string, TensorView> tensors = {
      {"flags \"1\"", {.data = bytes(flags), .dtype = DType::kBool, .shape = {3}}},
      {"empty", {.data = nullptr, .dtype = DType::kF32, .shape = {0, 7}}},
      {"half", {.data = bytes(halves), .dtype = DType::kBf16, .shape = {}}},
      {"weights", {.data = bytes(weights), .dtype = DType::kF32, .shape = {1, 3}}},
  };
  ASSERT_TRUE(WriteSafetensors(path, tensors, {{"seed", "7"}}).ok());

  const auto opened = SafetensorsFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->view().names().size(), tensors.size());
  EXPECT_EQ(opened->view().metadata().at("seed"), "7");
  for (const auto& [name, tensor] : tensors) {
    const auto found = opened->view().Find(name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->dtype, tensor.dtype) << name;
    EXPECT_EQ(found->shape, tensor.shape) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found->data) % ByteSize(tensor.dtype), 0u) << name;
    const auto size = static_cast<size_t>(*TensorBytes(tensor.dtype, tensor.shape));
    EXPECT_TRUE(size == 0 || std::memcmp(found->data, tensor.data, size) == 0) << name;
  }
}

TEST(SafetensorsFileTest, AFileStaysReadableWhenItsOwnerMoves) {
  const std::string path = TempPath("moved.safetensors");
  const float value = 5;
  ASSERT_TRUE(WriteSafetensors(path, {{"a", {.data = reinterpret_cast<const std::byte*>(&value), .shape = {1}}}}).ok());
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsFile moved = *std::move(opened);
  EXPECT_EQ(LoadElement(moved.view().Find("a")->data, DType::kF32), 5);
}

TEST(SafetensorsFileTest, RefusesToWriteWhatCouldNotBeRead) {
  const std::string path = TempPath("refused.safetensors");
  const TensorView empty = {.data = nullptr, .dtype = DType::kF32, .shape = {0}};
  for (const char* name : {"__metadata__", "\xff"}) {
    EXPECT_EQ(WriteSafetensors(path, {{name, empty}}).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(SafetensorsFileTest, NamesPathTensorAndReason) {
  const std::string path = TempPath("broken.safetensors");
  ASSERT_TRUE(WriteFile(path, {Bytes("{\"w\":" + Entry("F32", "[3]", "[0,8]") + "}", kEightBytes)}).ok());
  EXPECT_EQ(std::string(SafetensorsFile::Open(path).status().message()),
            absl::StrCat(path, ": 'w': 8 bytes do not hold shape [3] of F32"));
}

}  // namespace
}  // namespace triad
