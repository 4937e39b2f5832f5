#include "net/sim/tcp_sender.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stagger {
namespace {

constexpr std::uint64_t window_segments_min = 2;
constexpr unsigned back_off_max = 6;

}  // namespace

TcpSender::TcpSender(const TcpModelOptions& options)
    : options_(options),
      edge_(options.receive_bytes_max),
      window_(options.initial_segments * options.segment_bytes),
      threshold_(std::numeric_limits<std::uint64_t>::max()) {}

std::optional<TcpSender::Segment> TcpSender::next(TimePoint now) {
  const bool idle = flight_.empty() && lost_.empty();
  if (idle && now - sent_at_ > timeout()) {
    window_ = std::min(window_, options_.initial_segments * options_.segment_bytes);
  }
  const bool again = !lost_.empty();
  if (!again && (unsent() == 0 || next_ >= edge_)) {
    limited_ = false;
    return std::nullopt;
  }
  const bool full = flight_bytes_ + options_.segment_bytes > window_ && !flight_.empty();
  if (full && !urgent_) {
    limited_ = true;
    return std::nullopt;
  }
  if (again) {
    const auto [begin, end] = *lost_.begin();
    lost_.erase(lost_.begin());
    ++retransmissions_;
    return transmit(begin, end, now);
  }
  const std::uint64_t begin = next_;
  next_ = std::min({written_, edge_, begin + options_.segment_bytes});
  return transmit(begin, next_, now);
}

TcpSender::Segment TcpSender::transmit(std::uint64_t begin, std::uint64_t end, TimePoint now) {
  if (flight_.empty()) progress_at_ = now;
  sent_at_ = now;
  urgent_ = false;
  ++transmission_;
  flight_.emplace(transmission_, Sent{.begin = begin, .end = end, .at = now});
  flight_bytes_ += end - begin;
  return Segment{.begin = begin, .end = end, .transmission = transmission_};
}

void TcpSender::acknowledged(std::uint64_t transmission, TimePoint now) {
  const auto found = flight_.find(transmission);
  if (found == flight_.end()) return;  // of a segment that was taken for lost
  const std::uint64_t bytes = found->second.end - found->second.begin;
  sample(now - found->second.at);
  flight_bytes_ -= bytes;
  flight_.erase(found);
  progress_at_ = now;
  probed_ = false;
  backed_off_ = 0;
  lose_before(transmission);
  if (transmission > recovery_) grow(bytes);
}

void TcpSender::sample(Duration round_trip) {
  if (smooth_ == Duration{0}) {
    smooth_ = round_trip;
    deviation_ = round_trip / 2;
    return;
  }
  const Duration error = round_trip > smooth_ ? round_trip - smooth_ : smooth_ - round_trip;
  deviation_ += (error - deviation_) / 4;
  smooth_ += (round_trip - smooth_) / 8;
}

/// A window that is not used does not grow (RFC 7661).
void TcpSender::grow(std::uint64_t bytes) {
  if (!limited_) return;
  if (window_ < threshold_) {
    window_ = std::min(window_ + bytes, threshold_);
  } else {
    window_ += std::max<std::uint64_t>(options_.segment_bytes * bytes / window_, 1);
  }
}

void TcpSender::lose_before(std::uint64_t transmission) {
  bool fresh = false;
  while (!flight_.empty() && flight_.begin()->first < transmission) {
    fresh = fresh || flight_.begin()->first > recovery_;
    lose(flight_.begin());
  }
  if (fresh) reduce();
}

void TcpSender::reduce() {
  threshold_ = std::max(window_ / 2, window_segments_min * options_.segment_bytes);
  window_ = threshold_;
  recovery_ = transmission_;
}

void TcpSender::lose(std::map<std::uint64_t, Sent>::iterator sent) {
  lost_.emplace(sent->second.begin, sent->second.end);
  flight_bytes_ -= sent->second.end - sent->second.begin;
  flight_.erase(sent);
}

Duration TcpSender::timeout() const {
  if (smooth_ == Duration{0}) return 1s;
  return std::max(options_.timeout_min, smooth_ + 4 * deviation_) * (1U << backed_off_);
}

/// A probe is for a tail that nothing later can show to be lost.
bool TcpSender::probing() const {
  return !probed_ && backed_off_ == 0 && smooth_ > Duration{0} && lost_.empty();
}

TimePoint TcpSender::timeout_at() const {
  if (flight_.empty()) return time_point_max;
  if (!probing()) return progress_at_ + timeout();
  const Duration margin = flight_.size() == 1 ? options_.timeout_min : options_.probe_margin;
  return progress_at_ + std::min(2 * smooth_ + margin, timeout());
}

void TcpSender::timed_out(TimePoint now) {
  const bool probe = probing();
  progress_at_ = now;
  if (probe) {
    probed_ = true;
    urgent_ = true;
    lose(std::prev(flight_.end()));
    return;
  }
  ++timeouts_;
  threshold_ = std::max(window_ / 2, window_segments_min * options_.segment_bytes);
  while (!flight_.empty())
    lose(flight_.begin());
  window_ = options_.segment_bytes;
  recovery_ = transmission_;
  backed_off_ = std::min(backed_off_ + 1, back_off_max);
}

}  // namespace stagger
