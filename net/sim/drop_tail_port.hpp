#pragma once

#include <cstdint>
#include <optional>

#include "net/sim/rate_windows.hpp"
#include "net/time.hpp"

namespace stagger {

struct DropTailOptions {
  double rate_bits_per_second = 1e9;  ///< above 0; infinity: bytes take no time and none queue
  Duration latency = 25us;            ///< from the last bit's departure to its arrival
  std::uint64_t queue_bytes_max = std::uint64_t{256} << 10;
};

struct DropTailCounters {
  std::uint64_t bytes = 0;     ///< accepted
  std::uint64_t segments = 0;  ///< accepted
  std::uint64_t drops = 0;     ///< segments refused
  std::uint64_t queue_bytes_peak = 0;
  double queue_byte_seconds = 0.0;  ///< integral of the queue over time
};

/// The port of a switch towards one node: one rate and one finite queue for all flows. Pure.
/// The segment being sent counts as queued until its last bit has left.
class DropTailPort {
 public:
  explicit DropTailPort(DropTailOptions options);

  /// When the segment's last bit arrives; none if the queue has no room for all of it.
  /// REQUIRES that `now` does not go backwards from call to call.
  std::optional<TimePoint> offer(std::uint64_t bytes, TimePoint now);

  /// Bytes that have not left yet.
  std::uint64_t queue_bytes(TimePoint now) const;

  const DropTailCounters& counters() const { return counters_; }

  /// What left the port, and what was offered to it, dropped or not.
  const RateWindows& passed() const { return passed_; }

  const RateWindows& offered() const { return offered_; }

 private:
  DropTailOptions options_;
  TimePoint busy_until_;
  DropTailCounters counters_;
  RateWindows passed_;
  RateWindows offered_;
};

}  // namespace stagger
