#include "core/tensor/safetensors_header.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace triad {
namespace {

using nlohmann::json;

constexpr char kMetadataName[] = "__metadata__";
constexpr size_t kMaxSafetensorsRank = 32;

// Called by the parser for each token. Returning false stops it; error() then says why. There is no document in memory
// and no recursion, so what is hostile costs no more than its bytes.
class HeaderReader final : public json::json_sax_t {
 public:
  bool start_object(size_t) override {
    if (place_ == Place::kStart) return Enter(Place::kFile);
    if (place_ == Place::kFile && name_ == kMetadataName) return Enter(Place::kMetadata);
    if (place_ == Place::kFile) return Enter(Place::kTensor);
    return Fail("an object where none belongs");
  }

  bool key(std::string& key) override {
    if (place_ == Place::kFile) {
      name_ = std::move(key);
      if (name_ == kMetadataName) return metadata_seen_ ? Fail("named twice") : (metadata_seen_ = true);
      const auto [entry, is_new] = header_.tensors.try_emplace(name_);
      entry_ = &entry->second;
      fields_ = Fields();
      return is_new || Fail("named twice");
    }
    field_ = std::move(key);
    if (place_ == Place::kMetadata) {
      return header_.metadata.try_emplace(field_).second || Fail(absl::StrCat("'", field_, "' given twice"));
    }
    bool* seen = field_ == "dtype"          ? &fields_.dtype
                 : field_ == "shape"        ? &fields_.shape
                 : field_ == "data_offsets" ? &fields_.data_offsets
                                            : nullptr;
    if (seen == nullptr) return Fail(absl::StrCat("unknown field '", field_, "'"));
    return *seen ? Fail(absl::StrCat("'", field_, "' given twice")) : (*seen = true);
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[field_] = std::move(value);
      return true;
    }
    if (place_ == Place::kTensor && field_ == "dtype") {
      entry_->dtype = std::move(value);
      return true;
    }
    return Fail("a string where none belongs");
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") return Enter(Place::kShape);
    if (place_ == Place::kTensor && field_ == "data_offsets") return Enter(Place::kOffsets);
    return Fail("an array where none belongs");
  }

  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return Fail("a number past 2^63 - 1");
    const auto number = static_cast<int64_t>(value);
    if (place_ == Place::kShape) {
      if (entry_->shape.size() == kMaxSafetensorsRank)
        return Fail(absl::StrCat("more than ", kMaxSafetensorsRank, " dimensions"));
      entry_->shape.push_back(number);
      return true;
    }
    if (place_ != Place::kOffsets) return Fail("a number where none belongs");
    int64_t& offset = entry_->begin < 0 ? entry_->begin : entry_->end;
    if (offset >= 0) return Fail("more than two data_offsets");
    offset = number;
    return true;
  }

  bool end_array() override { return Enter(Place::kTensor); }

  bool end_object() override {
    if (place_ == Place::kFile) return Enter(Place::kEnd);
    if (place_ == Place::kTensor) {
      if (!fields_.dtype || !fields_.shape || !fields_.data_offsets) return Fail("lacks dtype, shape or data_offsets");
      if (entry_->end < 0) return Fail("data_offsets are not two numbers");
    }
    return Enter(Place::kFile);
  }

  bool null() override { return Fail("null where none belongs"); }
  bool boolean(bool) override { return Fail("a boolean where none belongs"); }
  bool number_integer(int64_t value) override { return Fail(absl::StrCat("the negative number ", value)); }
  bool number_float(double, const std::string& text) override { return Fail(absl::StrCat("the fraction ", text)); }
  bool binary(json::binary_t&) override { return Fail("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    name_.clear();
    return Fail(absl::StrCat("not JSON at byte ", position, " (", error.what(), ")"));
  }

  const std::string& error() const { return error_; }
  SafetensorsHeader& header() { return header_; }

 private:
  // What the next token belongs to.
  enum class Place { kStart, kFile, kMetadata, kTensor, kShape, kOffsets, kEnd };
  // Which fields of the current tensor have been met.
  struct Fields {
    bool dtype = false;
    bool shape = false;
    bool data_offsets = false;
  };

  bool Enter(Place place) {
    place_ = place;
    return true;
  }

  bool Fail(absl::string_view reason) {
    error_ = name_.empty() ? std::string(reason) : absl::StrCat("'", name_, "': ", reason);
    return false;
  }

  SafetensorsHeader header_;
  std::string error_;
  Place place_ = Place::kStart;
  std::string name_;                   // of the current tensor
  std::string field_;                  // of the current tensor or of the metadata
  SafetensorsEntry* entry_ = nullptr;  // in header_, of the current tensor
  Fields fields_;
  bool metadata_seen_ = false;
};

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text) {
  // The format's rule, which also keeps byte order marks and other openings out.
  if (text.empty() || text[0] != '{') return absl::InvalidArgumentError("the header does not begin with '{'");
  HeaderReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    return absl::InvalidArgumentError(absl::StrCat("header: ", reader.error()));
  }
  return std::move(reader.header());
}

absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header) {
  nlohmann::ordered_json document = json::object();
  if (!header.metadata.empty()) document[kMetadataName] = header.metadata;
  for (const auto& [name, entry] : header.tensors) {
    document[name] = {{"dtype", entry.dtype},
                      {"shape", std::vector<int64_t>(entry.shape.begin(), entry.shape.end())},
                      {"data_offsets", {entry.begin, entry.end}}};
  }
  try {
    return document.dump();
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("header: ", error.what()));
  }
}

}  // namespace triad
