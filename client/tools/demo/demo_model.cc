#include "client/tools/demo/demo_model.h"

#include <cmath>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace triad::tools {
namespace {

std::vector<float> Draw(std::mt19937_64& generator, int64_t count, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Position encoding of Vaswani et al. 2017, section 3.5: sines in even dimensions, cosines in odd ones.
float PositionEncoding(int64_t position, int64_t dim) {
  const double exponent = static_cast<double>(dim - dim % 2) / kModelDim;
  const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
  return static_cast<float>(dim % 2 == 0 ? std::sin(angle) : std::cos(angle));
}

// The letters of the word choose its numbers, so that a word has one embedding wherever it stands.
std::vector<float> Embedding(absl::string_view word, uint64_t seed) {
  const std::string letters = absl::AsciiStrToLower(word);
  std::seed_seq sequence(letters.begin(), letters.end());
  std::vector<uint32_t> mixed(2);
  sequence.generate(mixed.begin(), mixed.end());
  std::mt19937_64 generator(seed ^ (uint64_t{mixed[0]} << 32 | mixed[1]));
  return Draw(generator, kModelDim, /*deviation=*/1);
}

// hidden: [tokens, model_dim]; a drawn [model_dim, model_dim] matrix keeps the size of what it multiplies.
std::vector<float> Project(const std::vector<float>& hidden, std::mt19937_64& generator) {
  const std::vector<float> weights =
      Draw(generator, kModelDim * kModelDim, 1 / std::sqrt(static_cast<float>(kModelDim)));
  std::vector<float> projected(hidden.size(), 0);
  for (size_t row = 0; row < hidden.size(); row += kModelDim) {
    for (size_t from = 0; from < kModelDim; ++from) {
      for (size_t to = 0; to < kModelDim; ++to) {
        projected[row + to] += hidden[row + from] * weights[from * kModelDim + to];
      }
    }
  }
  return projected;
}

}  // namespace

Sentence MakeSentence(absl::string_view text, uint64_t seed) {
  Sentence sentence;
  sentence.words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  for (int64_t position = 0; position < sentence.tokens(); ++position) {
    const std::vector<float> embedding = Embedding(sentence.words[static_cast<size_t>(position)], seed);
    for (int64_t dim = 0; dim < kModelDim; ++dim) {
      sentence.hidden.push_back(embedding[static_cast<size_t>(dim)] + PositionEncoding(position, dim));
    }
  }
  std::mt19937_64 generator(seed);
  sentence.query = Project(sentence.hidden, generator);
  sentence.key = Project(sentence.hidden, generator);
  sentence.value = Project(sentence.hidden, generator);
  return sentence;
}

}  // namespace triad::tools
