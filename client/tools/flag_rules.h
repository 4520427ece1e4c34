// Flags that have no effect beside others, or no value, which are refused: nobody should believe that they had one.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace triad::tools {

// What flags need to have an effect. Names are as in "--rate"; what is needed or excluded may be a flag with a certain
// value, "--arrivals poisson".
struct FlagRule {
  std::vector<std::string> flags;          // the rule is about each of them
  std::string when = {};                   // a flag without which the rule says nothing; empty: it always holds
  std::vector<std::string> needs = {};     // one of these must be given; empty: none
  std::vector<std::string> excludes = {};  // none of these may be given
  std::string why = {};                    // ends the refusal
};

// From now on parsing `command` ends with a CLI::ParseError, which says what to change, where a flag is given against
// one of `rules`. All flags that they name have been added.
void AddFlagRules(CLI::App& command, std::vector<FlagRule> rules);

// The "--flag" of an `argument` "--flag=", whose value is empty; empty: it is none.
std::string FlagWithNothing(const std::string& argument);

}  // namespace triad::tools
