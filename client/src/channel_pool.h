// Connections to one target, and which of them a call takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/src/attention_methods.h"
#include "grpcpp/channel.h"
#include "triad/options.h"
#include "triad/v1/layer.grpc.pb.h"

namespace triad::client {

// The index of the smallest of `in_flight`, which is not empty; of several, the first at or after `turn`, wrapping
// round, so that an idle pool goes round-robin. Pure.
size_t PickChannel(absl::Span<const int64_t> in_flight, uint64_t turn);

// All functions may be called from any thread.
class ChannelPool : public std::enable_shared_from_this<ChannelPool> {
 public:
  // A channel for the length of one call. Keeps the pool alive.
  class Lease {
   public:
    Lease(std::shared_ptr<ChannelPool> pool, size_t index) : pool_(std::move(pool)), index_(index) {
      pool_->in_flight_[index_].fetch_add(1, std::memory_order_relaxed);
    }
    ~Lease() { pool_->in_flight_[index_].fetch_sub(1, std::memory_order_relaxed); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    const std::shared_ptr<grpc::Channel>& channel() const { return pool_->slots_[index_].channel; }
    const AttentionMethods& attention() const { return *pool_->slots_[index_].attention; }
    v1::LayerService::Stub& layers() const { return *pool_->slots_[index_].layers; }

   private:
    const std::shared_ptr<ChannelPool> pool_;
    const size_t index_;
  };

  // Errors as MakeConnection's.
  static absl::StatusOr<std::shared_ptr<ChannelPool>> Create(const ClientOptions& options);

  // Of calls that pick at the same moment two may pick the same channel: the counts steer, they do not bind.
  Lease Pick();

 private:
  struct Slot {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<AttentionMethods> attention;
    std::unique_ptr<v1::LayerService::Stub> layers;
  };

  // What the last reference does, on a thread that may destroy channels (see CallbackScope). Where there is no memory
  // or thread to be had for that, the channels stay open: the process keeps running, and they die with it.
  static void Destroy(ChannelPool* pool) noexcept;

  explicit ChannelPool(std::vector<Slot> slots) : slots_(std::move(slots)), in_flight_(slots_.size()) {}

  const std::vector<Slot> slots_;                // not empty
  std::vector<std::atomic<int64_t>> in_flight_;  // of each slot
  std::atomic<uint64_t> turn_ = 0;
};

}  // namespace triad::client
