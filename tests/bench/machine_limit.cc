#include "tests/bench/machine_limit.h"

#include <algorithm>
#include <cstddef>
#include <memory>

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
  StreamReader(int threads, int64_t bytes)
      : threads_(threads),
        read_bytes_(std::min(kReadBytes, bytes) / (threads * kReadStep) * threads * kReadStep),
        buffer_(static_cast<size_t>(std::max(bytes, read_bytes_)), std::byte{0x3f}) {}

  // Bytes/s over the next bytes of the buffer.
  double Read(int streams) {
    if (next_ + read_bytes_ > static_cast<int64_t>(buffer_.size())) next_ = 0;
    const std::byte* const data = buffer_.data() + next_;
    const int64_t part = read_bytes_ / threads_;
    next_ += read_bytes_;
    const double seconds =
        RunOnThreads(threads_, [&](int thread) { ReadStreams(data + thread * part, part, streams); });
    return static_cast<double>(read_bytes_) / seconds;
  }

 private:
  const int threads_;
  const int64_t read_bytes_;
  const std::vector<std::byte> buffer_;  // not zeros: those might share a page
  int64_t next_ = 0;
};

// `peak_of`: FLOP/s of the calling thread, the best of so many pieces.
MachineLimit PeakLimit(const char* name, double (*peak_of)(int pieces), int threads) {
  const auto measure = [=]() -> std::vector<double> {
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

MachineLimit StreamLimit(int threads, int64_t bytes) {
  const auto reader = std::make_shared<StreamReader>(threads, bytes);
  const auto measure = [reader]() -> std::vector<double> {
    std::vector<double> rates;
    for (const int streams : kStreams) rates.push_back(reader->Read(streams));
    return {rates[0], *std::max_element(rates.begin(), rates.end())};
  };
  return {.unit = "bytes", .names = {"stream", "best_stream"}, .measure = measure, .piece_work = kPieceBytes * threads};
}

}  // namespace triad
