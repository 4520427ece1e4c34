// Typed fields of a model's config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace triad::tools {

// Reads fields one by one and keeps the first thing that is wrong, naming file, field, rule and value: whoever reads
// looks at status() once, at the end. null counts as unset, as it does for those who write these files.
class ConfigReader {
 public:
  // Largest size that is believed. The product of two of them fits.
  static constexpr int64_t kMaxSize = int64_t{1} << 30;

  // Borrows `object`, an object; `where` begins every message.
  ConfigReader(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {}

  bool Has(const std::string& field) const;

  // The field's value, or `otherwise` when it is unset; without that, it is required. Some harmless value (> 0, empty,
  // false) when it is wrong. Sizes are integers from 1 to kMaxSize, numbers finite and > 0.
  int64_t Size(const std::string& field, std::optional<int64_t> otherwise = std::nullopt);
  double Number(const std::string& field, std::optional<double> otherwise = std::nullopt);
  bool Flag(const std::string& field, bool otherwise);
  std::string Text(const std::string& field, std::optional<std::string> otherwise = std::nullopt);

  // The field's value as JSON, shortened; "unset" where there is none.
  std::string Shown(const std::string& field) const;
  // Records that `field` breaks `rule`, such as "must divide hidden_size", with its value.
  void Refuse(const std::string& field, absl::string_view rule);
  // Records `status` unless it is OK.
  void Update(const absl::Status& status);

  const absl::Status& status() const { return status_; }
  const nlohmann::json& object() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  // The field's value, or null.
  const nlohmann::json& Get(const std::string& field) const;
  template <typename T>
  T Otherwise(const std::string& field, const std::optional<T>& otherwise, T harmless);

  const nlohmann::json& object_;
  const std::string where_;
  absl::Status status_;
};

}  // namespace triad::tools
