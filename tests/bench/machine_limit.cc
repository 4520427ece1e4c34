#include "tests/bench/machine_limit.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/base/check.h"
#include "tests/bench/bf16_peak.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/run_on_threads.h"
#include "tests/bench/stream_read.h"

namespace triad {
namespace {

constexpr int kStreams[] = {1, 2, 4, 8};
constexpr int64_t kReadStep = 64 * 8;    // what 8 streams of whole cache lines are a multiple of
constexpr int64_t kReadBytes = 8 << 20;  // some 0.8 ms
// Of each thread. Several wait for the last of them where a piece ends: longer pieces, or that would cost much.
constexpr double PieceFlop(int threads) { return threads == 1 ? 5e8 : 1e9; }
constexpr double kPieceBytes = 32 << 20;

class StreamReader {
 public:
  StreamReader(int threads, const ReadMemory& memory) : threads_(threads) {
    const int64_t step = threads * kReadStep;
    int64_t count = 1;
    for (int64_t i = 0; i < count; ++i) {  // of each memory in turn, as a row goes
      for (const absl::Span<const std::byte> bytes : memory) {
        const auto size = static_cast<int64_t>(bytes.size());
        const int64_t part = std::min(kReadBytes, size) / step * step;
        TRIAD_CHECK(part > 0, "there is a line for each of 8 streams of every thread");
        count = std::max(count, size / part);
        if ((i + 1) * part > size) continue;
        parts_.push_back(bytes.subspan(static_cast<size_t>(i * part), static_cast<size_t>(part)));
      }
    }
  }

  void SkipTo(double share) { next_ = static_cast<size_t>(share * static_cast<double>(parts_.size())); }

  // Bytes/s over the next part.
  double Read(int streams) {
    const absl::Span<const std::byte> part = parts_[next_++ % parts_.size()];
    const auto bytes = static_cast<int64_t>(part.size());
    const double seconds = RunOnThreads(threads_, [&](int thread) {
      ReadStreams(part.data() + thread * (bytes / threads_), bytes / threads_, streams);
    });
    return static_cast<double>(bytes) / seconds;
  }

 private:
  const int threads_;
  ReadMemory parts_;
  size_t next_ = 0;
};

// `peak_of`: FLOP/s of the calling thread, the best of so many pieces.
MachineLimit PeakLimit(const char* name, double (*peak_of)(int pieces), int threads) {
  const auto measure = [=](double) -> std::vector<double> {
    std::vector<double> peaks(static_cast<size_t>(threads));
    RunOnThreads(threads, [&](int thread) { peaks[static_cast<size_t>(thread)] = peak_of(/*pieces=*/5); });
    double sum = 0;
    for (const double peak : peaks) sum += peak;
    return {sum};
  };
  return {.unit = "flop",
          .names = {name},
          .measure = measure,
          .piece_work = PieceFlop(threads) * threads,
          .larger_counts = true};
}

}  // namespace

MachineLimit FmaLimit(int threads) { return PeakLimit("peak", MeasureFmaPeak, threads); }
MachineLimit Bf16Limit(int threads) { return PeakLimit("bf16_peak", MeasureBf16Peak, threads); }

MachineLimit StreamLimit(int threads, const ReadMemory& memory) {
  const auto reader = std::make_shared<StreamReader>(threads, memory);
  const auto measure = [reader](double done) -> std::vector<double> {
    reader->SkipTo(done + 0.5);
    std::vector<double> rates;
    for (const int streams : kStreams) rates.push_back(reader->Read(streams));
    return {rates[0], *std::max_element(rates.begin(), rates.end())};
  };
  return {.unit = "bytes", .names = {"stream", "best_stream"}, .measure = measure, .piece_work = kPieceBytes * threads};
}

}  // namespace triad
