#include "core/tensor/npy_file.h"

#include <cmath>
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

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

template <class T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string File(const std::string& header, const std::string& data, int version = 1) {
  return absl::StrCat("\x93NUMPY", LittleEndian(version, 1), LittleEndian(0, 1),
                      LittleEndian(header.size(), version == 1 ? 2 : 4), header, data);
}

std::string Header(const std::string& descr, const std::string& shape, const std::string& fortran_order = "False") {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran_order, ", 'shape': ", shape, ", }\n");
}

absl::StatusOr<Tensor> Parse(const std::string& file, const NpyReadOptions& options = {}) {
  return ParseNpy({reinterpret_cast<const std::byte*>(file.data()), file.size()}, options);
}

std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(LoadElement(tensor.data() + i * ByteSize(tensor.dtype()), tensor.dtype()));
  }
  return values;
}

std::string Refusal(const std::string& file, const NpyReadOptions& options = {}) {
  const absl::StatusOr<Tensor> tensor = Parse(file, options);
  if (tensor.ok()) return absl::StrCat("read as ", Name(tensor->dtype()), " ", ToString(tensor->shape()));
  EXPECT_TRUE(absl::IsInvalidArgument(tensor.status()) || absl::IsUnimplemented(tensor.status())) << tensor.status();
  return std::string(tensor.status().message());
}

const std::string kSixFloats = Bytes<float>({0, 1, 2, 3, 4, 5});

TEST(NpyFileTest, ReadsRowMajorFloatsInEveryFormatVersion) {
  for (int version : {1, 2, 3}) {
    const auto tensor = Parse(File(Header("<f4", "(2, 3)"), kSixFloats, version));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), DType::kF32);
    EXPECT_EQ(tensor->shape(), Shape({2, 3}));
    EXPECT_THAT(Values(*tensor), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(NpyFileTest, TurnsFortranOrderIntoRowMajor) {
  const auto matrix = Parse(File(Header("<f4", "(2, 3)", "True"), kSixFloats));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(Values(*matrix), ElementsAre(0, 2, 4, 1, 3, 5));
  const auto cube = Parse(File(Header("<f4", "(1, 2, 3)", "True"), kSixFloats));
  ASSERT_TRUE(cube.ok()) << cube.status();
  EXPECT_THAT(Values(*cube), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(NpyFileTest, SwapsBigEndianElements) {
  std::string swapped;
  for (size_t i = 0; i < kSixFloats.size(); i += 4) {
    swapped.append(kSixFloats.rbegin() + static_cast<int64_t>(kSixFloats.size() - i - 4),
                   kSixFloats.rbegin() + static_cast<int64_t>(kSixFloats.size() - i));
  }
  const auto tensor = Parse(File(Header(">f4", "(6,)"), swapped));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(Values(*tensor), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(NpyFileTest, ReadsHalfFloatsAndBooleansAsTheyAre) {
  const auto halves = Parse(File(Header("<f2", "(2,)"), Bytes<uint16_t>({0x3c00, 0xc000})));
  ASSERT_TRUE(halves.ok()) << halves.status();
  EXPECT_EQ(halves->dtype(), DType::kF16);
  EXPECT_THAT(Values(*halves), ElementsAre(1, -2));
  const auto flags = Parse(File(Header("|b1", "(3,)"), Bytes<uint8_t>({1, 0, 1})));
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->dtype(), DType::kBool);
  EXPECT_THAT(Values(*flags), ElementsAre(1, 0, 1));
}

TEST(NpyFileTest, ReadsTwoOpaqueBytesAsBfloat16OnlyWhenTold) {
  for (const char* descr : {"<V2", "|V2"}) {
    const std::string file = File(Header(descr, "(2,)"), Bytes<uint16_t>({0x3f80, 0xc000}));
    EXPECT_THAT(Refusal(file), HasSubstr("may be bfloat16"));
    const auto tensor = Parse(file, {.accept_void_as_bf16 = true});
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), DType::kBf16);
    EXPECT_THAT(Values(*tensor), ElementsAre(1, -2));
  }
  EXPECT_THAT(Refusal(File(Header(">V2", "(1,)"), "ab"), {.accept_void_as_bf16 = true}), HasSubstr("not supported"));
}

TEST(NpyFileTest, ReadsBytesAsBooleansOnlyWhenTold) {
  const std::string file = File(Header("|u1", "(3,)"), Bytes<uint8_t>({0, 1, 255}));
  EXPECT_THAT(Refusal(file), HasSubstr("would have to be converted"));
  const auto flags = Parse(file, {.accept_uint8_as_bool = true});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->dtype(), DType::kBool);
  EXPECT_THAT(Values(*flags), ElementsAre(0, 1, 1));
}

TEST(NpyFileTest, ConvertsDoublesAndIntegersOnlyWhenTold) {
  const NpyReadOptions convert = {.convert_to_f32 = true};
  const std::string doubles = File(Header("<f8", "(3,)"), Bytes<double>({0.1, -INFINITY, 3}));
  EXPECT_THAT(Refusal(doubles), HasSubstr("would have to be converted"));
  EXPECT_THAT(Values(*Parse(doubles, convert)), ElementsAre(0.1f, -INFINITY, 3));
  EXPECT_THAT(Values(*Parse(File(Header("<i2", "(2,)"), Bytes<int16_t>({-2, 300})), convert)), ElementsAre(-2, 300));
  EXPECT_THAT(Values(*Parse(File(Header("|i1", "(1,)"), Bytes<int8_t>({-128})), convert)), ElementsAre(-128));
  EXPECT_THAT(Values(*Parse(File(Header("<i8", "(1,)"), Bytes<int64_t>({INT64_MIN})), convert)), ElementsAre(-0x1p63f));
  EXPECT_THAT(Values(*Parse(File(Header("<u8", "(1,)"), Bytes<uint64_t>({UINT64_MAX})), convert)),
              ElementsAre(0x1p64f));
}

TEST(NpyFileTest, RefusesDoublesThatFloatCannotHold) {
  const NpyReadOptions convert = {.convert_to_f32 = true};
  EXPECT_THAT(Refusal(File(Header("<f8", "(2,)"), Bytes<double>({1, 1e300})), convert), HasSubstr("element 1 is past"));
  EXPECT_THAT(Values(*Parse(File(Header("<f8", "(1,)"), Bytes<double>({0x1.fffffeffp127})), convert)),
              ElementsAre(0x1.fffffep127f));
}

TEST(NpyFileTest, ReadsScalarsAndEmptyArrays) {
  const auto scalar = Parse(File(Header("<f4", "()", "True"), Bytes<float>({7})));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(scalar->shape().size(), 0u);
  EXPECT_THAT(Values(*scalar), ElementsAre(7));
  const auto empty = Parse(File(Header(">f4", "(3, 0, 2)", "True"), ""));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->shape(), Shape({3, 0, 2}));
}

TEST(NpyFileTest, AcceptsTheSpellingsOfOtherWriters) {
  for (const char* header : {
           "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}\n",  // other order, other quotes, no comma
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }          \n",  // Python 2
           "  { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , }\n",
       }) {
    EXPECT_TRUE(Parse(File(header, kSixFloats)).ok()) << Refusal(File(header, kSixFloats));
  }
}

TEST(NpyFileTest, RefusesTypesItWouldMisread) {
  for (const char* descr : {"<c8", "|O", "|S4", "<U1", "<M8[ns]", "f4", "|f4", "=f4", "<f16", "<V4", "", "<", "<f",
                            "<f-4", "<f4 ", "<b8"}) {
    EXPECT_THAT(Refusal(File(Header(descr, "(6,)"), kSixFloats), {true, true, true}), HasSubstr("type '")) << descr;
  }
  EXPECT_THAT(Refusal(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }\n", kSixFloats)),
              HasSubstr("structured"));
}

TEST(NpyFileTest, RefusesHeadersThatAreNotNumpys) {
  for (const char* header : {
           "",
           "\n",
           "{\n",
           "{}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",  // no newline
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x\n",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}\n",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}\n",
           "{'descr': '<f4', 'fortran_order': False}\n",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}\n",
           "{'descr: '<f4', 'fortran_order': False, 'shape': (2, 3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}\n",  // a number, not a tuple
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, +3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (02, 3)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': ((2, 3),)}\n",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}\n",
       }) {
    EXPECT_THAT(Refusal(File(header, kSixFloats)), HasSubstr("the header")) << header;
  }
}

TEST(NpyFileTest, RefusesDeepNestingWithoutDescending) {
  const std::string nested(60000, '(');
  EXPECT_THAT(Refusal(File(Header("<f4", nested), kSixFloats)), HasSubstr("expected a dimension"));
  std::string many = "(";
  for (int i = 0; i < 40; ++i) many += "1, ";
  EXPECT_THAT(Refusal(File(Header("<f4", many + ")"), Bytes<float>({1}))), HasSubstr("at most 32 dimensions"));
}

TEST(NpyFileTest, RefusesDataThatDoesNotMatchTheShape) {
  EXPECT_THAT(Refusal(File(Header("<f4", "(2, 3)"), kSixFloats.substr(1))), HasSubstr("does not match the 23 bytes"));
  EXPECT_THAT(Refusal(File(Header("<f4", "(2, 3)"), kSixFloats + "x")), HasSubstr("does not match the 25 bytes"));
  for (const char* shape : {"(4611686018427387904, 4)", "(9223372036854775807,)", "(0, 9223372036854775807, 3)"}) {
    EXPECT_THAT(Refusal(File(Header("<f4", shape), "")), HasSubstr("does not match")) << shape;
  }
}

TEST(NpyFileTest, RefusesFilesThatEndEarly) {
  const std::string file = File(Header("<f4", "(2, 3)"), kSixFloats, 2);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Parse(file.substr(0, size)).ok()) << "of " << file.size() << " bytes, the first " << size;
  }
  EXPECT_THAT(Refusal("\x93NUMPY\x02" + LittleEndian(0, 1) + LittleEndian(0xffffffff, 4)), HasSubstr("refused"));
}

TEST(NpyFileTest, RefusesOtherFormatVersions) {
  EXPECT_THAT(Refusal(File(Header("<f4", "(2, 3)"), kSixFloats, 4)), HasSubstr("version 4.0 is not supported"));
  EXPECT_THAT(Refusal(File(Header("<f4", "(2, 3)"), kSixFloats, 0)), HasSubstr("version 0.0 is not supported"));
}

TEST(NpyFileTest, WhatIsWrittenIsReadBackAndItsDataIsAligned) {
  const std::string path = TempPath("written.npy");
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
      SCOPED_TRACE(absl::StrCat(Name(dtype), " ", ToString(shape)));
      Tensor tensor = *Tensor::Zeros(dtype, shape);
      for (int64_t i = 0; i < tensor.byte_size(); ++i) tensor.data()[i] = static_cast<std::byte>(i + 1);
      ASSERT_TRUE(WriteNpy(path, tensor.view()).ok());
      const auto read = ReadNpy(path, {.accept_void_as_bf16 = true});
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->dtype(), dtype);
      EXPECT_EQ(read->shape(), shape);
      ASSERT_EQ(read->byte_size(), tensor.byte_size());
      EXPECT_EQ(std::memcmp(read->data(), tensor.data(), static_cast<size_t>(tensor.byte_size())), 0);
      EXPECT_EQ(NpyPrefix(tensor.view()).size() % 64, 0u);
    }
  }
}

TEST(NpyFileTest, NamesThePathOfAFileItCannotRead) {
  const auto missing = ReadNpy("/nonexistent/q.npy");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nonexistent/q.npy"));
  EXPECT_THAT(std::string(ReadNpy(::testing::TempDir()).status().message()), HasSubstr("not a regular file"));
  EXPECT_THAT(std::string(ReadNpy("/dev/null").status().message()), HasSubstr("/dev/null: not a regular file"));
}

}  // namespace
}  // namespace triad
