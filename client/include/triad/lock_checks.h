// Abseil's debugging aid that gRPC pays for.
#pragma once

namespace triad::client {

// Opt-in: turns off Abseil's search for cycles among the orders in which its locks are taken, for the whole process.
// Distributions may build Abseil with it on (Debian 12 and 13 do); then every lock that gRPC takes is entered into a
// graph, at every call, and a cycle aborts the process. Where it is off already this changes
// nothing. At any time, from any thread; best first thing in main.
void TurnOffLockOrderChecks();

}  // namespace triad::client
