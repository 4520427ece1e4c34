#include "core/tensor/npy_header.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace triad {
namespace {

constexpr size_t kMaxRank = 32;  // numpy's own bound, until its version 2

class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text), rest_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    if (!absl::ConsumeSuffix(&rest_, "\n")) return absl::InvalidArgumentError("the header does not end in a newline");
    if (!Take("{")) return Expected("'{'");
    while (!Take("}")) {
      if (absl::Status status = ParseItem(); !status.ok()) return status;
      if (!Take(",") && !absl::StartsWith(rest_, "}")) return Expected("',' or '}'");
    }
    SkipSpaces();
    if (!rest_.empty()) return Expected("nothing but spaces after '}'");
    if (!descr_ || !fortran_order_ || !shape_) {
      return absl::InvalidArgumentError("the header lacks one of 'descr', 'fortran_order' and 'shape'");
    }
    return NpyHeader{.descr = *std::move(descr_), .fortran_order = *fortran_order_, .shape = *std::move(shape_)};
  }

 private:
  absl::Status ParseItem() {
    const std::optional<std::string> key = TakeString();
    if (!key) return Expected("a quoted key");
    if (!Take(":")) return Expected("':'");
    if (*key == "descr" && !descr_) {
      descr_ = TakeString();
      return descr_ ? absl::OkStatus() : Expected("a type in quotes (structured types are refused)");
    }
    if (*key == "fortran_order" && !fortran_order_) {
      if (Take("True")) {
        fortran_order_ = true;
      } else if (Take("False")) {
        fortran_order_ = false;
      }
      return fortran_order_ ? absl::OkStatus() : Expected("True or False");
    }
    if (*key == "shape" && !shape_) return ParseShape();
    return Expected("'descr', 'fortran_order' and 'shape', once each; one of them");
  }

  absl::Status ParseShape() {
    if (!Take("(")) return Expected("'('");
    Shape shape;
    bool comma = true;  // a single number in parentheses is no tuple without it
    while (!Take(")")) {
      if (!comma) return Expected("','");
      const std::optional<int64_t> size = TakeSize();
      if (!size) return Expected("a dimension from 0 to 2^63 - 1");
      if (shape.size() == kMaxRank) return Expected(absl::StrCat("at most ", kMaxRank, " dimensions"));
      shape.push_back(*size);
      comma = Take(",");
    }
    if (shape.size() == 1 && !comma) return Expected("a ',' in a shape of one dimension");
    shape_ = std::move(shape);
    return absl::OkStatus();
  }

  void SkipSpaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  // Takes `token` and the spaces on both sides of it, if it comes next.
  bool Take(absl::string_view token) {
    SkipSpaces();
    const bool taken = absl::ConsumePrefix(&rest_, token);
    SkipSpaces();
    return taken;
  }

  // A string in single or double quotes. Escapes are not interpreted: no key or type that we know has one.
  std::optional<std::string> TakeString() {
    for (absl::string_view quote : {"'", "\""}) {
      if (!absl::StartsWith(rest_, quote)) continue;
      const size_t end = rest_.find(quote, 1);
      if (end == absl::string_view::npos) return std::nullopt;
      std::string content(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      return content;
    }
    return std::nullopt;
  }

  // Digits without leading zero; Python 2 appended an L to large numbers.
  std::optional<int64_t> TakeSize() {
    const size_t digits =
        std::find_if_not(rest_.begin(), rest_.end(), [](unsigned char c) { return absl::ascii_isdigit(c); }) -
        rest_.begin();
    int64_t size = 0;
    if (digits > 1 && rest_[0] == '0') return std::nullopt;
    if (!absl::SimpleAtoi(rest_.substr(0, digits), &size)) return std::nullopt;
    rest_.remove_prefix(digits);
    absl::ConsumePrefix(&rest_, "L");
    return size;
  }

  absl::Status Expected(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is not numpy's: expected ", what, " at byte ", text_.size() - 1 - rest_.size()));
  }

  const absl::string_view text_;
  absl::string_view rest_;  // what is still to be read
  std::optional<std::string> descr_;
  std::optional<bool> fortran_order_;
  std::optional<Shape> shape_;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) { return HeaderParser(text).Parse(); }

std::string FormatNpyHeader(const NpyHeader& header) {
  return absl::StrCat("{'descr': '", header.descr, "', 'fortran_order': ", header.fortran_order ? "True" : "False",
                      ", 'shape': (", absl::StrJoin(header.shape, ", "), header.shape.size() == 1 ? ",), }" : "), }");
}

}  // namespace triad
