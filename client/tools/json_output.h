// JSON for machines.
#pragma once

#include <ostream>

#include "nlohmann/json.hpp"

namespace triad::tools {

using Json = nlohmann::ordered_json;  // fields in the order in which they are written

// One document and a newline. Text that is not UTF-8 (a server or a file may bring some) is mended, not an error.
inline void PrintJson(const Json& document, std::ostream& out) {
  out << document.dump(/*indent=*/2, /*indent_char=*/' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)
      << "\n";
}

}  // namespace triad::tools
