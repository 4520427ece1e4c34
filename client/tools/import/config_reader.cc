#include "client/tools/import/config_reader.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace triad::tools {

const nlohmann::json& ConfigReader::Get(const std::string& field) const {
  static const nlohmann::json& unset = *new nlohmann::json();
  const auto found = object_.find(field);
  return found == object_.end() ? unset : *found;
}

bool ConfigReader::Has(const std::string& field) const { return !Get(field).is_null(); }

template <typename T>
T ConfigReader::Otherwise(const std::string& field, const std::optional<T>& otherwise, T harmless) {
  if (!otherwise) Refuse(field, "is required");
  return otherwise.value_or(harmless);
}

int64_t ConfigReader::Size(const std::string& field, std::optional<int64_t> otherwise) {
  const nlohmann::json& value = Get(field);
  if (value.is_null()) return Otherwise<int64_t>(field, otherwise, 1);
  // An integer past int64_t is unsigned, one past uint64_t a float.
  if (value.is_number_integer()) {
    const bool fits = !value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{kMaxSize};
    const int64_t size = fits ? value.get<int64_t>() : 0;
    if (size >= 1 && size <= kMaxSize) return size;
  }
  Refuse(field, absl::StrCat("must be an integer from 1 to ", kMaxSize));
  return 1;
}

double ConfigReader::Number(const std::string& field, std::optional<double> otherwise) {
  const nlohmann::json& value = Get(field);
  if (value.is_null()) return Otherwise<double>(field, otherwise, 1);
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number > 0) return number;
  }
  Refuse(field, "must be a finite number > 0");
  return 1;
}

bool ConfigReader::Flag(const std::string& field, bool otherwise) {
  const nlohmann::json& value = Get(field);
  if (value.is_null()) return otherwise;
  if (value.is_boolean()) return value.get<bool>();
  Refuse(field, "must be true or false");
  return otherwise;
}

std::string ConfigReader::Text(const std::string& field, std::optional<std::string> otherwise) {
  const nlohmann::json& value = Get(field);
  if (value.is_null()) return Otherwise<std::string>(field, otherwise, "");
  if (value.is_string()) return value.get<std::string>();
  Refuse(field, "must be a text");
  return "";
}

std::string ConfigReader::Shown(const std::string& field) const {
  constexpr size_t kMaxShown = 100;
  if (!Has(field)) return "unset";
  const std::string text =
      Get(field).dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kMaxShown ? text : absl::StrCat(text.substr(0, kMaxShown), "...");
}

void ConfigReader::Refuse(const std::string& field, absl::string_view rule) {
  Update(absl::InvalidArgumentError(absl::StrCat(where_, ": ", field, " ", rule, "; was ", Shown(field))));
}

void ConfigReader::Update(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

}  // namespace triad::tools
