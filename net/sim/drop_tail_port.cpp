#include "net/sim/drop_tail_port.hpp"

#include <algorithm>
#include <cmath>

namespace stagger {

DropTailPort::DropTailPort(DropTailOptions options) : options_(options) {}

std::uint64_t DropTailPort::queue_bytes(TimePoint now) const {
  if (busy_until_ <= now) return 0;
  const auto left = static_cast<double>((busy_until_ - now).count());
  return static_cast<std::uint64_t>(std::llround(left * options_.rate_bits_per_second / 8e9));
}

std::optional<TimePoint> DropTailPort::offer(std::uint64_t bytes, TimePoint now) {
  offered_.add(bytes, now, now);
  const std::uint64_t queued = queue_bytes(now);
  if (bytes > options_.queue_bytes_max || queued > options_.queue_bytes_max - bytes) {
    ++counters_.drops;
    return std::nullopt;
  }
  const double nanoseconds = static_cast<double>(bytes) * 8e9 / options_.rate_bits_per_second;
  const TimePoint begin = std::max(busy_until_, now);
  busy_until_ = begin + Duration{std::llround(nanoseconds)};
  passed_.add(bytes, begin, busy_until_);
  counters_.queue_byte_seconds += static_cast<double>(bytes) * to_seconds(busy_until_ - now);
  counters_.bytes += bytes;
  ++counters_.segments;
  counters_.queue_bytes_peak = std::max(counters_.queue_bytes_peak, queued + bytes);
  return busy_until_ + options_.latency;
}

}  // namespace stagger
