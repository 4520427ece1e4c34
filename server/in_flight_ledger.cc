#include "server/in_flight_ledger.h"

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {

InFlightLedger::Answer InFlightLedger::Acquire(const Claim& claim) {
  if (claim.bytes > limits_.max_bytes) {
    return {.status = absl::InvalidArgumentError(absl::StrCat("request and reply must fit --max_in_flight_bytes = ",
                                                              limits_.max_bytes, "; were ", claim.bytes, " bytes"))};
  }
  MutexLock lock(mu_);
  if (draining_) return {.status = DrainingError(), .refusal = Refusal::kDraining};
  if (claim.bytes > limits_.max_bytes - all_.bytes) {
    return {.status = absl::ResourceExhaustedError(absl::StrCat("requests here hold ", all_.bytes,
                                                                " of --max_in_flight_bytes = ", limits_.max_bytes,
                                                                "; this one needs ", claim.bytes, " more")),
            .refusal = Refusal::kBytes};
  }
  auto peer = peers_.end();
  if (!claim.peer.empty()) {
    peer = peers_.find(claim.peer);
    if (peer == peers_.end()) peer = peers_.emplace(std::string(claim.peer), Share()).first;
    // A peer with nothing here is not refused, so none stays with nothing.
    absl::Status status = CheckPeer(peer->second, claim.bytes);
    if (!status.ok()) return {.status = std::move(status), .refusal = Refusal::kPeer};
    ++peer->second.requests;
    peer->second.bytes += claim.bytes;
  }
  ++all_.requests;
  all_.bytes += claim.bytes;
  return {.hold = Hold(this, claim.bytes, peer)};
}

absl::Status InFlightLedger::CheckPeer(const Share& share, int64_t bytes) const {
  if (share.requests == 0) return absl::OkStatus();
  if (limits_.max_peer_requests > 0 && share.requests >= limits_.max_peer_requests) {
    return absl::ResourceExhaustedError(absl::StrCat("this client's address has ", share.requests,
                                                     " requests here, --max_peer_in_flight_requests is ",
                                                     limits_.max_peer_requests));
  }
  if (limits_.max_peer_bytes > 0 && bytes > limits_.max_peer_bytes - share.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("this client's address holds ", share.bytes,
                                                     " of --max_peer_in_flight_bytes = ", limits_.max_peer_bytes,
                                                     "; this request needs ", bytes, " more"));
  }
  return absl::OkStatus();
}

void InFlightLedger::Release(int64_t bytes, Peers::iterator peer) {
  MutexLock lock(mu_);
  if (peer != peers_.end()) {
    peer->second.bytes -= bytes;
    if (--peer->second.requests == 0) peers_.erase(peer);
  }
  all_.bytes -= bytes;
  // Signalled under the lock: whoever waits may destroy this object as soon as it can see 0.
  if (--all_.requests == 0) idle_.SignalAll();
}

absl::Status InFlightLedger::CheckOpen() const { return draining_ ? DrainingError() : absl::OkStatus(); }

void InFlightLedger::BeginDrain() {
  MutexLock lock(mu_);
  draining_ = true;
}

bool InFlightLedger::WaitIdle(Clock& clock, Time deadline) {
  MutexLock lock(mu_);
  while (all_.requests > 0 && clock.Now() < deadline) clock.WaitUntil(idle_, mu_, deadline);
  return all_.requests == 0;
}

int64_t InFlightLedger::requests() const {
  MutexLock lock(mu_);
  return all_.requests;
}

int64_t InFlightLedger::bytes() const {
  MutexLock lock(mu_);
  return all_.bytes;
}

int64_t InFlightLedger::peers() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(peers_.size());
}

}  // namespace triad
