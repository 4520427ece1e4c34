#include "server/in_flight_ledger.h"

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {

absl::StatusOr<InFlightLedger::Hold> InFlightLedger::Acquire(int64_t bytes) {
  if (bytes > max_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("request and reply must fit --max_in_flight_bytes = ", max_bytes_, "; were ", bytes, " bytes"));
  }
  MutexLock lock(mu_);
  if (draining_) return DrainingError();
  if (bytes > max_bytes_ - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("requests here hold ", bytes_, " of --max_in_flight_bytes = ",
                                                     max_bytes_, "; this one needs ", bytes, " more"));
  }
  ++requests_;
  bytes_ += bytes;
  return Hold(this, bytes);
}

void InFlightLedger::Release(int64_t bytes) {
  MutexLock lock(mu_);
  bytes_ -= bytes;
  // Signalled under the lock: whoever waits may destroy this object as soon as it can see 0.
  if (--requests_ == 0) idle_.SignalAll();
}

absl::Status InFlightLedger::CheckOpen() const {
  MutexLock lock(mu_);
  return draining_ ? DrainingError() : absl::OkStatus();
}

void InFlightLedger::BeginDrain() {
  MutexLock lock(mu_);
  draining_ = true;
}

bool InFlightLedger::WaitIdle(Clock& clock, Time deadline) {
  MutexLock lock(mu_);
  while (requests_ > 0 && clock.Now() < deadline) clock.WaitUntil(idle_, mu_, deadline);
  return requests_ == 0;
}

int64_t InFlightLedger::requests() const {
  MutexLock lock(mu_);
  return requests_;
}

int64_t InFlightLedger::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

}  // namespace triad
