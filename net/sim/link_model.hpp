#pragma once

#include <cstdint>

#include "net/sim/rate_windows.hpp"
#include "net/time.hpp"

namespace stagger {

struct LinkOptions {
  double rate_bits_per_second = 1e9;                         ///< infinity: bytes take no time
  Duration latency = 25us;                                   ///< added once by each link of the way
  std::uint64_t queue_bytes_max = std::uint64_t{256} << 10;  ///< what a sender may have waiting
};

/// When the bytes of one send() meet the link.
struct Transfer {
  TimePoint begin;  ///< the first bit leaves
  TimePoint end;    ///< the last bit has left
  TimePoint taken;  ///< the rest fits into the queue: the sender may go on
};

/// One direction of a node's network card: first come, first served, at a fixed rate. Pure.
///
/// As egress (send) it serialises what its node sends. As ingress (receive) it takes what the
/// egresses of others deliver: bytes pass while they arrive (cut-through), so one flow between
/// equal links is not charged twice, and several slow senders fill one fast link.
class LinkModel {
 public:
  explicit LinkModel(LinkOptions options);

  const LinkOptions& options() const { return options_; }

  /// Time that `bytes` occupy the link, to the nearest nanosecond.
  Duration serialisation(std::uint64_t bytes) const;

  /// Earliest time from `now` on at which the queue takes a byte more.
  TimePoint room_at(TimePoint now) const;

  /// REQUIRES that `now` does not go backwards from call to call.
  Transfer send(std::uint64_t bytes, TimePoint now);

  /// The time at which the last byte is through. Called in the order of `last_bit`.
  TimePoint receive(std::uint64_t bytes, TimePoint first_bit, TimePoint last_bit);

  /// Bytes asked for and not yet through, those of blocked senders included.
  std::uint64_t backlog_bytes(TimePoint now) const;

  std::uint64_t bytes_total() const { return bytes_total_; }

  std::uint64_t backlog_bytes_max() const { return backlog_bytes_max_; }

  Duration busy_total() const { return busy_total_; }

  /// What passed in each window of time.
  const RateWindows& passed() const { return passed_; }

 private:
  void account(std::uint64_t bytes, TimePoint now);

  LinkOptions options_;
  TimePoint busy_until_;
  std::uint64_t bytes_total_ = 0;
  std::uint64_t backlog_bytes_max_ = 0;
  Duration busy_total_{0};
  RateWindows passed_;
};

}  // namespace stagger
