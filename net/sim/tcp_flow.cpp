#include "net/sim/tcp_flow.hpp"

#include <algorithm>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

TcpFlow::TcpFlow(SimFabric& fabric, FabricNode& source, FabricNode& target)
    : fabric_(fabric),
      options_(fabric.options().tcp.value()),
      source_(source),
      target_(target),
      sender_(options_),
      edge_told_(options_.receive_bytes_max) {}

void TcpFlow::write(SimFrame frame) {
  const std::uint64_t payload = frame.payload.size() * fabric_.options().payload_scale;
  last_begin_ = sender_.written();
  sender_.write(frame.wire_bytes);
  const std::uint64_t end = sender_.written();
  if (!abandoned_) {
    frames_.push_back(Frame{.frame = std::move(frame), .head_end = end - payload, .end = end});
  }
  pump();
}

void TcpFlow::finish(bool cut) {
  if (std::exchange(finishing_, true)) return;
  sent_ = nullptr;
  if (cut) sender_.cut(last_begin_);
  const Duration way = SimFabric::latency(source_, target_);
  fabric_.clock().call_at(fabric_.clock().now() + way, [self = shared_from_this()] {
    self->finished_ = true;
    if (self->arrival_) self->arrival_();
  });
}

void TcpFlow::pump() {
  const TimePoint now = fabric_.clock().now();
  while (const auto segment = sender_.next(now))
    launch(*segment);
  watch_timeout();
  if (sent_ && takes_more()) sent_();
}

void TcpFlow::launch(const TcpSender::Segment& segment) {
  const std::uint64_t bytes = segment.end - segment.begin + options_.header_bytes;
  const Transfer transfer = source_.egress.send(bytes, fabric_.clock().now());
  const TimePoint arrival = transfer.end + source_.egress.options().latency + fabric_.jitter();
  last_arrival_ = std::max(last_arrival_, arrival);
  fabric_.clock().call_at(
      last_arrival_, [self = shared_from_this(), segment] { self->reach_port(segment); });
}

void TcpFlow::reach_port(const TcpSender::Segment& segment) {
  if (source_.clogged || target_.clogged) return;  // and is sent again in time
  const std::uint64_t bytes = segment.end - segment.begin + options_.header_bytes;
  const auto through = target_.port.offer(bytes, fabric_.clock().now());
  if (!through) return;
  fabric_.clock().call_at(
      *through, [self = shared_from_this(), segment] { self->reach_end(segment); });
}

void TcpFlow::reach_end(const TcpSender::Segment& segment) {
  if (source_.clogged || target_.clogged) return;
  if (segment.begin <= arrived_) {
    arrived_ = std::max(arrived_, segment.end);
  } else {
    early_[segment.begin] = segment.end;
  }
  while (!early_.empty() && early_.begin()->first <= arrived_) {
    arrived_ = std::max(arrived_, early_.begin()->second);
    early_.erase(early_.begin());
  }
  if (abandoned_) consumed_ = arrived_;
  if (!frames_.empty() && frames_.front().head_read)
    consume(std::min(arrived_, frames_.front().end));
  acknowledge(segment.transmission);
  if (arrival_) arrival_();
}

/// Also tells the sender how far it may go.
void TcpFlow::acknowledge(std::uint64_t transmission) {
  edge_told_ = edge();
  const TimePoint heard = fabric_.clock().now() + SimFabric::latency(target_, source_);
  fabric_.clock().call_at(heard, [self = shared_from_this(), transmission, edge = edge_told_] {
    if (self->source_.clogged || self->target_.clogged) {
      if (transmission == 0) self->tell_window_later();
      return;
    }
    self->sender_.open_window(edge);
    if (transmission > 0) {
      self->sender_.acknowledged(transmission, self->fabric_.clock().now());
    }
    self->pump();
  });
}

/// Nothing else would say it again: a segment that is not acknowledged is sent again, this is not.
void TcpFlow::tell_window_later() {
  const TimePoint again = fabric_.clock().now() + options_.timeout_min;
  fabric_.clock().call_at(again, [self = shared_from_this()] { self->acknowledge(0); });
}

std::uint64_t TcpFlow::edge() const {
  return consumed_ + options_.receive_bytes_max;
}

void TcpFlow::watch_timeout() {
  const TimePoint due = sender_.timeout_at();
  if (due >= timer_at_) return;  // the timer that is set looks again
  timer_at_ = due;
  fabric_.clock().call_at(due, [self = shared_from_this(), due] {
    if (self->timer_at_ != due) return;
    self->timer_at_ = time_point_max;
    const TimePoint now = self->fabric_.clock().now();
    if (self->sender_.timeout_at() <= now) self->sender_.timed_out(now);
    self->pump();
  });
}

const SimFrame& TcpFlow::head() {
  CHECK(has_head(), "no frame has come");
  Frame& first = frames_.front();
  first.head_read = true;
  consume(std::min(arrived_, first.end));
  return first.frame;
}

SimFrame TcpFlow::take() {
  CHECK(has_payload(), "the frame has not come");
  consume(frames_.front().end);
  SimFrame frame = std::move(frames_.front().frame);
  frames_.pop_front();
  return frame;
}

void TcpFlow::abandon() {
  abandoned_ = true;
  arrival_ = nullptr;
  frames_.clear();
  consume(arrived_);
}

/// A window that had become narrow is announced anew, as a kernel does.
void TcpFlow::consume(std::uint64_t until) {
  consumed_ = std::max(consumed_, until);
  const bool was_narrow = edge_told_ < arrived_ + 2 * options_.segment_bytes;
  if (was_narrow && edge() >= edge_told_ + 2 * options_.segment_bytes) acknowledge(0);
}

}  // namespace stagger
