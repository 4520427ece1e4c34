// The hidden states, queries, keys and values of one sentence, from weights that were drawn, not learnt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace triad::tools {

// The base model of Vaswani et al. 2017 (arXiv:1706.03762), table 3.
constexpr int64_t kModelDim = 512;
constexpr int64_t kHeads = 8;
constexpr int64_t kHeadDim = kModelDim / kHeads;

struct Sentence {
  std::vector<std::string> words;
  std::vector<float> hidden;  // [tokens, model_dim], row-major: what the others are projected from
  // Each [tokens, heads, head_dim], row-major.
  std::vector<float> query;
  std::vector<float> key;
  std::vector<float> value;

  int64_t tokens() const { return static_cast<int64_t>(words.size()); }
};

// Splits `text` at spaces; gives each word (whatever its case) an embedding drawn from a normal distribution, adds the
// paper's sinusoidal position encoding (section 3.5), and projects the sum, the hidden state, by three drawn matrices.
// The same seed gives the same numbers.
Sentence MakeSentence(absl::string_view text, uint64_t seed);

}  // namespace triad::tools
