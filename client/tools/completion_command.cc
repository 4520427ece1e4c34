#include "client/tools/completion_command.h"

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace triad::tools {
namespace {

struct Flag {
  std::string name;  // without dashes
  std::string description;
  bool takes_value = false;
  std::vector<std::string> choices;  // values it may take; empty: any
};

struct Command {
  std::string name;  // with that of the command it belongs to before it, as in "layers list"
  std::string description;
  std::vector<Flag> flags;
  std::vector<std::string> words;  // what may stand without a flag; empty: nothing
  bool is_group = false;           // has commands of its own, which are its words
};

// CLI11 knows an option's choices only as text, such as "TEXT:{f32,bf16}".
std::vector<std::string> Choices(const std::string& type_name) {
  const size_t begin = type_name.find('{');
  const size_t end = type_name.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type_name.substr(begin + 1, end - begin - 1), ',');
}

// The commands of `app` and, each after the one it belongs to, theirs. `prefix`: the name of `app` and a space.
std::vector<Command> Describe(const CLI::App& app, const std::string& prefix = "") {
  std::vector<Command> commands;
  for (const CLI::App* subcommand : app.get_subcommands(/*filter=*/nullptr)) {
    Command command = {.name = prefix + subcommand->get_name(),
                       .description = subcommand->get_description(),
                       .flags = {},
                       .words = {},
                       .is_group = false};
    for (const CLI::Option* option : subcommand->get_options()) {
      std::vector<std::string> choices = Choices(option->get_type_name());
      if (option->get_lnames().empty()) {
        command.words = std::move(choices);
        continue;
      }
      command.flags.push_back({.name = option->get_lnames().front(),
                               .description = option->get_description(),
                               .takes_value = option->get_items_expected_max() > 0,
                               .choices = std::move(choices)});
    }
    std::vector<Command> nested = Describe(*subcommand, command.name + " ");
    for (const CLI::App* word : subcommand->get_subcommands(/*filter=*/nullptr)) {
      command.words.push_back(word->get_name());
      command.is_group = true;
    }
    commands.push_back(std::move(command));
    std::move(nested.begin(), nested.end(), std::back_inserter(commands));
  }
  return commands;
}

bool IsNested(const Command& command) { return absl::StrContains(command.name, ' '); }

std::string BashScript(const std::vector<Command>& commands) {
  std::string names, groups, values, words;
  for (const Command& command : commands) {
    if (command.is_group) absl::StrAppend(&groups, " ", command.name);
    if (!IsNested(command)) absl::StrAppend(&names, " ", command.name);
    absl::StrAppend(&words, "    \"", command.name, "\") words=\"", absl::StrJoin(command.words, " "));
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&words, " --", flag.name);
      if (!flag.takes_value) continue;
      absl::StrAppend(&values, "    \"", command.name, " --", flag.name, "\") COMPREPLY=($(compgen -W \"",
                      absl::StrJoin(flag.choices, " "), "\" -- \"$current\")); return ;;\n");
    }
    absl::StrAppend(&words, "\" ;;\n");
  }
  // Where nothing is offered, "-o default" completes file names.
  return absl::StrCat(R"(# bash completion for triad. Load it with: source <(triad completion bash)
_triad() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  local words="--help --version)",
                      names, R"("
  COMPREPLY=()
  [[ ")",
                      groups, R"( " == *" $command "* ]] && ((COMP_CWORD > 2)) && command+=" ${COMP_WORDS[2]}"
  case "$command $previous" in
)",
                      values, R"(  esac
  ((COMP_CWORD > 1)) && case "$command" in
)",
                      words, R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _triad triad
)");
}

std::string ZshScript(const std::vector<Command>& commands) {
  const auto quoted = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"'", "'\\''"}, {":", "\\:"}, {"[", "\\["}, {"]", "\\]"}});
  };
  std::string names, groups, cases;
  for (const Command& command : commands) {
    if (command.is_group) absl::StrAppend(&groups, " ", command.name);
    if (!IsNested(command)) {
      absl::StrAppend(&names, "    '", command.name, ":", quoted(command.description), "'\n");
    }
    absl::StrAppend(&cases, "    \"", command.name, "\") _arguments");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&cases, " \\\n      '--", flag.name, flag.takes_value ? "=[" : "[", quoted(flag.description),
                      "]");
      if (!flag.choices.empty()) {
        absl::StrAppend(&cases, ":value:(", absl::StrJoin(flag.choices, " "), ")");
      } else if (flag.takes_value) {
        absl::StrAppend(&cases, ":value:_files");
      }
      absl::StrAppend(&cases, "'");
    }
    if (!command.words.empty())
      absl::StrAppend(&cases, " \\\n      '1:word:(", absl::StrJoin(command.words, " "), ")'");
    absl::StrAppend(&cases, " ;;\n");
  }
  return absl::StrCat(R"(#compdef triad
# zsh completion for triad. Load it with: source <(triad completion zsh), or save it as _triad in a folder of $fpath.
_triad() {
  local -a commands=(
)",
                      names, R"(  )
  if ((CURRENT == 2)); then _describe command commands; return; fi
  local command=$words[2]
  shift words; ((CURRENT--))
  if [[ ")",
                      groups, R"( " == *" $command "* ]] && ((CURRENT > 2)); then
    command+=" $words[2]"
    shift words; ((CURRENT--))
  fi
  case $command in
)",
                      cases, R"(  esac
}
if [[ ${funcstack[1]} == _triad ]]; then _triad "$@"; else compdef _triad triad; fi
)");
}

std::string FishScript(const std::vector<Command>& commands) {
  const auto quoted = [](const std::string& text) { return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}); };
  std::string script = "# fish completion for triad. Load it with: triad completion fish | source\n";
  for (const Command& command : commands) {
    const std::vector<std::string> path = absl::StrSplit(command.name, ' ');
    absl::StrAppend(
        &script, "complete -c triad -f -n ",
        IsNested(command) ? absl::StrCat("'__fish_seen_subcommand_from ", path[0], "'") : "__fish_use_subcommand",
        " -a ", path.back(), " -d '", quoted(command.description), "'\n");
    const std::string condition = absl::StrCat("complete -c triad -n '__fish_seen_subcommand_from ",
                                               absl::StrJoin(path, "; and __fish_seen_subcommand_from "), "'");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&script, condition, " -l ", flag.name, " -d '", quoted(flag.description), "'");
      if (!flag.choices.empty()) {
        absl::StrAppend(&script, " -x -a '", absl::StrJoin(flag.choices, " "), "'");
      } else if (flag.takes_value) {
        absl::StrAppend(&script, " -r");
      }
      absl::StrAppend(&script, "\n");
    }
    if (!command.words.empty() && !command.is_group) {
      absl::StrAppend(&script, condition, " -f -a '", absl::StrJoin(command.words, " "), "'\n");
    }
  }
  return script;
}

}  // namespace

void AddCompletionCommand(CLI::App& app, const World& world) {
  auto shell = std::make_shared<std::string>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes triad's commands and flags");
  command->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  command->callback([shell, &app, &world] {
    const std::vector<Command> commands = Describe(app);
    world.out << (*shell == "bash"  ? BashScript(commands)
                  : *shell == "zsh" ? ZshScript(commands)
                                    : FishScript(commands));
  });
}

}  // namespace triad::tools
