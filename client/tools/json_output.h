// JSON for machines, and the same for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <ostream>
#include <string>

#include "nlohmann/json.hpp"

namespace triad::tools {

using Json = nlohmann::ordered_json;  // fields in the order in which they are written

// One document and a newline. Text that is not UTF-8 (a server or a file may bring some) is mended, not an error.
inline void PrintJson(const Json& document, std::ostream& out) {
  out << document.dump(/*indent=*/2, /*indent_char=*/' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)
      << "\n";
}

// The members of `object` for people: "name  value", a line each; what is nested follows, indented.
inline void PrintTable(const Json& object, std::ostream& out, const std::string& indent = "") {
  size_t columns = 24 - indent.size();  // alike in most answers
  for (const auto& [name, value] : object.items()) columns = std::max(columns, name.size());
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      out << indent << name << "\n";
      PrintTable(value, out, indent + "  ");
    } else {
      out << indent << std::left << std::setw(static_cast<int>(columns)) << name << "  "
          << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
    }
  }
}

}  // namespace triad::tools
