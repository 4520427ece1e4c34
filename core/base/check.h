// Invariants of our own code. Never for what a user sent: that is a Status.
#pragma once

#include <cstdio>
#include <cstdlib>

// Ends the process, saying which invariant broke and where, when `condition` is false.
#define TRIAD_CHECK(condition, invariant)                                                                    \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", __FILE__, __LINE__, invariant, #condition); \
      std::abort();                                                                                          \
    }                                                                                                        \
  } while (false)
