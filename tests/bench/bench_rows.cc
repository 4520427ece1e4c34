#include "tests/bench/bench_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace triad {

void RegisterRow(const std::string& name, std::function<void(benchmark::State&)> run) {
  const auto once = [run = std::move(run)](benchmark::State& state) {
    for (auto _ : state) run(state);
  };
  benchmark::RegisterBenchmark(absl::StrCat("BM_", name).c_str(), once)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace triad
