#include "client/tools/flag_rules.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace triad::tools {
namespace {

void Check(const CLI::App& command, const FlagRule& rule) {
  const auto given = [&command](const std::string& flag) {
    const CLI::Option* option = command.get_option(flag);
    const bool takes_value = option->get_items_expected_max() > 0;
    return option->count() > 0 && (takes_value || option->as<bool>());  // --causal=false is none
  };
  const auto refuse = [&rule](const std::string& flag, const std::string& does_what) {
    throw CLI::ValidationError(absl::StrCat(flag, " ", does_what, ": ", rule.why));
  };
  if (!rule.when.empty() && !given(rule.when)) return;
  for (const std::string& flag : rule.flags) {
    if (!given(flag)) continue;
    const auto excluded = std::find_if(rule.excludes.begin(), rule.excludes.end(), given);
    if (excluded != rule.excludes.end()) refuse(flag, absl::StrCat("does not go with ", *excluded));
    if (!rule.needs.empty() && std::none_of(rule.needs.begin(), rule.needs.end(), given)) {
      refuse(flag, absl::StrCat(rule.when.empty() ? "needs " : absl::StrCat("beside ", rule.when, " needs "),
                                absl::StrJoin(rule.needs, " or ")));
    }
  }
}

}  // namespace

void AddFlagRules(CLI::App& command, std::vector<FlagRule> rules) {
  command.parse_complete_callback([&command, rules = std::move(rules)] {
    for (const FlagRule& rule : rules) Check(command, rule);
  });
}

}  // namespace triad::tools
