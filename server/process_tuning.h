// Settings of libraries, for the whole process, that decide how fast messages move.
#pragma once

namespace triad {

// Call first in main, before any thread or large allocation exists.
void TuneProcess();

}  // namespace triad
