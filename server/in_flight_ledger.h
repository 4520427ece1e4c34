// What is here: requests and their bytes, from acceptance until the reply has been handed to the transport.
//
// It bounds memory (the scheduler lets go of a request when it is computed; a slow reader keeps its reply here much
// longer), of all clients and of each, and it says when a draining server is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/batching/scheduler.h"

namespace triad {

struct LedgerLimits {
  int64_t max_bytes = 0;
  int64_t max_peer_requests = 0;  // of one peer; 0: no limit
  int64_t max_peer_bytes = 0;     // of one peer, unless it has but one request here; 0: no limit
};

// Thread-safe; never blocks, except in WaitIdle. Outlives its holds. Every operation is O(log peers); peers are those
// that have something here.
class InFlightLedger {
 private:
  struct Share {
    int64_t requests = 0;
    int64_t bytes = 0;
  };
  using Peers = std::map<std::string, Share, std::less<>>;

 public:
  // One request's share, given back when it is destroyed. Movable; a move exchanges the two.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(bytes_, other.bytes_);
      std::swap(peer_, other.peer_);
      return *this;
    }
    ~Hold() {
      if (owner_ != nullptr) owner_->Release(bytes_, peer_);
    }

   private:
    friend class InFlightLedger;
    Hold(InFlightLedger* owner, int64_t bytes, Peers::iterator peer) : owner_(owner), bytes_(bytes), peer_(peer) {}

    InFlightLedger* owner_ = nullptr;
    int64_t bytes_ = 0;
    Peers::iterator peer_;
  };

  // One request that asks to be let in.
  struct Claim {
    int64_t bytes = 0;
    absl::string_view peer;  // PeerName; empty: counted for nobody
  };
  struct Answer {
    absl::Status status;             // OK: `hold` is the claim's
    std::optional<Refusal> refusal;  // for metrics; none when OK, or when the claim is at fault (INVALID_ARGUMENT)
    Hold hold;
  };

  explicit InFlightLedger(const LedgerLimits& limits) : limits_(limits) {}

  // UNAVAILABLE: draining. INVALID_ARGUMENT: the bytes alone are past the bound. RESOURCE_EXHAUSTED: with the others
  // they are, or the peer has as much here as one may.
  Answer Acquire(const Claim& claim);

  // OK, or the UNAVAILABLE of Acquire: cheap and without the lock, so that a draining server refuses before it decodes.
  // Who comes in at that very moment is refused by Acquire.
  absl::Status CheckOpen() const;

  // No holds are given out from here on.
  void BeginDrain();
  // Waits until there are no holds, or until `deadline` on `clock`. True: there are none.
  bool WaitIdle(Clock& clock, Time deadline);

  int64_t requests() const;
  int64_t bytes() const;
  int64_t peers() const;

 private:
  absl::Status CheckPeer(const Share& share, int64_t bytes) const;
  void Release(int64_t bytes, Peers::iterator peer);

  const LedgerLimits limits_;
  mutable Mutex mu_;                   // guards all below
  CondVar idle_;                       // signalled when all_.requests falls to 0
  std::atomic<bool> draining_{false};  // changed under mu_, read by CheckOpen without
  Share all_ ABSL_GUARDED_BY(mu_);     // bytes <= max_bytes
  Peers peers_ ABSL_GUARDED_BY(mu_);   // with requests > 0 each
};

}  // namespace triad
