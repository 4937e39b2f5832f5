#include "net/sim/link_model.hpp"

#include <algorithm>
#include <cmath>

#include "observability/check.hpp"

namespace stagger {

LinkModel::LinkModel(LinkOptions options) : options_(options) {
  CHECK(options_.rate_bits_per_second > 0, "a link needs a rate");
  CHECK(options_.latency >= Duration{0}, "latency cannot be negative");
}

Duration LinkModel::serialisation(std::uint64_t bytes) const {
  return from_seconds(static_cast<double>(bytes) * 8 / options_.rate_bits_per_second);
}

TimePoint LinkModel::room_at(TimePoint now) const {
  return std::max(now, busy_until_ - serialisation(options_.queue_bytes_max));
}

Transfer LinkModel::send(std::uint64_t bytes, TimePoint now) {
  const TimePoint begin = std::max(now, busy_until_);
  const TimePoint end = begin + serialisation(bytes);
  busy_until_ = end;
  account(bytes, now);
  const TimePoint fits = end - serialisation(options_.queue_bytes_max);
  return Transfer{.begin = begin, .end = end, .taken = std::max(now, fits)};
}

TimePoint LinkModel::receive(std::uint64_t bytes, TimePoint first_bit, TimePoint last_bit) {
  CHECK(first_bit <= last_bit, "the last bit overtook the first");
  const TimePoint begin = std::max(first_bit, busy_until_);
  busy_until_ = begin + serialisation(bytes);
  passed_.add(bytes, begin, busy_until_);
  account(bytes, last_bit);
  return std::max(last_bit, busy_until_);
}

std::uint64_t LinkModel::backlog_bytes(TimePoint now) const {
  if (busy_until_ <= now || std::isinf(options_.rate_bits_per_second)) return 0;
  const double seconds = to_seconds(busy_until_ - now);
  return static_cast<std::uint64_t>(std::llround(seconds * options_.rate_bits_per_second / 8));
}

void LinkModel::account(std::uint64_t bytes, TimePoint now) {
  bytes_total_ += bytes;
  busy_total_ += serialisation(bytes);
  backlog_bytes_max_ = std::max(backlog_bytes_max_, backlog_bytes(now));
}

}  // namespace stagger
