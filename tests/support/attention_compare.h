// Judges an answer against the f64 reference by the bounds of "Numbers people can trust".
#pragma once

#include "gtest/gtest.h"
#include "tests/support/attention_case.h"

namespace triad {

// The f64 reference's answer to `content`, rounded to f32 and not further, whatever the content's type; always with lse
// and weights.
Answer ReferenceAnswer(const AttentionContent& content);

// What one would write without care for memory: scores and softmax in f32, weights rounded to the type before the value
// product, f32 accumulation, output rounded. The yardstick for half-width types.
Array4 NaiveOutput(const AttentionContent& content);

// L: the largest scale * sum |q_i k_i| + |bias| + |ALiBi| over visible pairs that is finite. A logit of size L cannot
// be rounded better than eps * L.
double LargestLogitTerms(const AttentionContent& content);

// Whether every element of `answer` is within its bound of the reference, weights are exactly 0 where hidden and their
// rows add up to 1, and non-finite elements are the same ones. The message of a failure has the options, the worst
// element, its row, and how the error compares with the naive computation's.
testing::AssertionResult MatchesReference(const AttentionContent& content, const Answer& answer);

}  // namespace triad
