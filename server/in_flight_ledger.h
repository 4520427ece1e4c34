// What is here: requests and their bytes, from acceptance until the reply has been handed to the transport.
//
// It bounds memory (the scheduler lets go of a request when it is computed; a slow reader keeps its reply here much
// longer), and it says when a draining server is done.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace triad {

// Thread-safe; never blocks, except in WaitIdle. Outlives its holds.
class InFlightLedger {
 public:
  // One request's share, given back when it is destroyed. Movable; a move exchanges the two.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold() {
      if (owner_ != nullptr) owner_->Release(bytes_);
    }

   private:
    friend class InFlightLedger;
    Hold(InFlightLedger* owner, int64_t bytes) : owner_(owner), bytes_(bytes) {}

    InFlightLedger* owner_ = nullptr;
    int64_t bytes_ = 0;
  };

  explicit InFlightLedger(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // UNAVAILABLE: draining. INVALID_ARGUMENT: `bytes` alone are past the bound. RESOURCE_EXHAUSTED: with the others they
  // are.
  absl::StatusOr<Hold> Acquire(int64_t bytes);

  // OK, or the UNAVAILABLE of Acquire: cheap, so that a draining server refuses before it decodes.
  absl::Status CheckOpen() const;

  // No holds are given out from here on.
  void BeginDrain();
  // Waits until there are no holds, or until `deadline` on `clock`. True: there are none.
  bool WaitIdle(Clock& clock, Time deadline);

  int64_t requests() const;
  int64_t bytes() const;

 private:
  void Release(int64_t bytes);

  const int64_t max_bytes_;
  mutable Mutex mu_;  // guards all below
  CondVar idle_;      // signalled when requests_ falls to 0
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  int64_t requests_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // <= max_bytes_
};

}  // namespace triad
