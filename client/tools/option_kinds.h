// Kinds of options that CLI11 has no single call for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/tensor/dtype.h"
#include "triad/attend.h"

namespace triad::tools {

inline constexpr char kKeepDescription[] = "What is visible, .npy: booleans or bytes, 0 = hidden";
inline constexpr char kBiasDescription[] = "What is added to the scores, .npy";

// An option that takes one of a few words. `target` outlives the parse.
template <class T>
CLI::Option* AddChoice(CLI::App& command, const std::string& name, T& target,
                       const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  const auto assign = [&target, choices](const std::string& text) {
    for (const auto& [word, value] : choices) {
      if (word == text) target = value;
    }
  };
  return command.add_option_function<std::string>(name, assign, description)->check(CLI::IsMember(words));
}

// What a list of `Items` has: of a vector, or of one that may be unset.
template <class Items>
struct ItemOf {
  using Type = typename Items::value_type;
};
template <class Items>
struct ItemOf<std::optional<Items>> : ItemOf<Items> {};

// An option that takes values separated by commas.
template <class Items>
CLI::Option* AddList(CLI::App& command, const std::string& name, Items& target, const std::string& description) {
  using Item = typename ItemOf<Items>::Type;
  // Split here: CLI11 would leave out what is empty, and take "," for no list at all.
  const auto assign = [name, &target](const std::vector<std::string>& lists) {
    std::vector<Item> items;
    for (const std::string& list : lists) {
      for (absl::string_view text : absl::StrSplit(list, ',')) {
        items.emplace_back();
        if (text.empty() || !CLI::detail::lexical_cast(std::string(text), items.back())) {
          throw CLI::ValidationError(name, absl::StrCat("must be values separated by commas; was ", list));
        }
      }
    }
    target = std::move(items);
  };
  // CLI11's own "any number" would print as values separated by spaces.
  constexpr int kMostItems = CLI::detail::expected_max_vector_size - 1;
  return command.add_option_function<std::vector<std::string>>(name, assign, description)
      ->expected(1, kMostItems)
      ->allow_extra_args(false)
      ->type_name(absl::StrCat(CLI::detail::type_name<Item>(), ",..."));
}

// An option that takes a time such as 500ms, of at least `least` and at most `most`.
inline CLI::Option* AddTime(CLI::App& command, const std::string& name, absl::Duration least, absl::Duration most,
                            std::function<void(absl::Duration)> assign, const std::string& description) {
  const auto parse = [name, least, most, assign = std::move(assign)](const std::string& text) {
    absl::Duration time;
    if (!absl::ParseDuration(text, &time) || time < least || time > most) {
      throw CLI::ValidationError(
          name, absl::StrCat("must be a duration such as 500ms or 1m30s, from ", absl::FormatDuration(least), " to ",
                             absl::FormatDuration(most), "; was ", text));
    }
    assign(time);
  };
  return command.add_option_function<std::string>(name, parse, description)->type_name("DURATION");
}

// --timeout.
inline CLI::Option* AddTimeout(CLI::App& command, absl::Duration& timeout, const std::string& description) {
  constexpr absl::Duration kLeast = absl::Milliseconds(1);  // what gRPC's timers count: less may pass unnoticed
  return AddTime(
             command, "--timeout", kLeast, absl::InfiniteDuration(),
             [&timeout](absl::Duration time) { timeout = time; }, description)
      ->default_str(absl::FormatDuration(timeout));
}

// An option that takes the name of a file to read. Empty: not given.
inline CLI::Option* AddFile(CLI::App& command, const std::string& name, std::string& path,
                            const std::string& description) {
  return command.add_option(name, path, description)->type_name("FILE.npy");
}

// --dtype: what `tensors` are converted to.
inline CLI::Option* AddDtype(CLI::App& command, std::optional<DType>& dtype, const std::string& tensors) {
  return AddChoice<std::optional<DType>>(
      command, "--dtype", dtype, {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
      absl::StrCat("Convert ", tensors,
                   " to this before sending, from doubles and integers too (a bias of those becomes f32); bf16 also "
                   "takes two-byte void .npy files (as ml_dtypes writes them) for bfloat16"));
}

// --priority.
inline CLI::Option* AddPriority(CLI::App& command, client::Priority& priority) {
  return AddChoice<client::Priority>(command, "--priority", priority,
                                     {{"normal", client::Priority::kNormal}, {"low", client::Priority::kLow}},
                                     "What goes first under load")
      ->default_str("normal");
}

}  // namespace triad::tools
