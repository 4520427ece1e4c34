#include "client/tools/flag_rules.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace triad::tools {
namespace {

// `flag` is "--rate", or "--arrivals poisson".
bool IsGiven(const CLI::App& command, const std::string& flag) {
  const std::pair<std::string, std::string> name_and_value = absl::StrSplit(flag, absl::MaxSplits(' ', 1));
  const auto& [name, value] = name_and_value;
  const CLI::Option* option = command.get_option(name);
  if (option->count() == 0) return false;
  if (option->get_items_expected_max() == 0) return option->as<bool>();  // --causal=false is none
  return value.empty() || option->results().back() == value;
}

void Check(const CLI::App& command, const FlagRule& rule) {
  const auto given = [&command](const std::string& flag) { return IsGiven(command, flag); };
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

std::string FlagWithNothing(const std::string& argument) {
  const bool is_one = absl::StartsWith(argument, "--") && argument.find('=') == argument.size() - 1;
  return is_one ? argument.substr(0, argument.size() - 1) : "";
}

}  // namespace triad::tools
