#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "net/sim/fabric.hpp"
#include "net/sim/tcp_sender.hpp"

namespace stagger {

/// One direction of a simulated TCP connection: frames become a stream of segments, which queue at
/// the sender's card and at the switch port of the receiver, where they may be dropped.
///
/// For:     SimTcpConnection; one end writes, the other reads.
/// Owner:   both ends, and each segment under way: what a closed end has written still arrives.
/// Thread:  the one that drives the world.
///
/// Acknowledgements take the way's latency and no bytes of any link.
class TcpFlow : public std::enable_shared_from_this<TcpFlow> {
 public:
  TcpFlow(SimFabric& fabric, FabricNode& source, FabricNode& target);

  // ---- the writing end ----

  void write(SimFrame frame);

  bool takes_more() const { return sender_.unsent() <= options_.unsent_bytes_max; }

  /// After what has been written, or, if the last frame is `cut` off, after what of it has been
  /// sent.
  void finish(bool cut);

  /// Called when something written has been sent.
  void on_sent(std::function<void()> call) { sent_ = std::move(call); }

  const TcpSender& sender() const { return sender_; }

  // ---- the reading end ----

  /// Bytes of the stream that have come, without gap.
  std::uint64_t arrived() const { return arrived_; }

  /// The first frame's head has come.
  bool has_head() const { return !frames_.empty() && arrived_ >= frames_.front().head_end; }

  /// REQUIRES has_head(). The frame stays until it is taken.
  const SimFrame& head();

  /// All of the frame whose head was read has come.
  bool has_payload() const { return !frames_.empty() && arrived_ >= frames_.front().end; }

  /// REQUIRES has_payload().
  SimFrame take();

  /// The writer's end has come, and nothing else will.
  bool ended() const { return finished_ && arrived_ >= sender_.written(); }

  /// Nobody reads any longer: what arrives is thrown away.
  void abandon();

  /// Called when something may have come.
  void on_arrival(std::function<void()> call) { arrival_ = std::move(call); }

 private:
  struct Frame {
    SimFrame frame;
    std::uint64_t head_end = 0;
    std::uint64_t end = 0;
    bool head_read = false;
  };

  void pump();
  void launch(const TcpSender::Segment& segment);
  void reach_port(const TcpSender::Segment& segment);
  void reach_end(const TcpSender::Segment& segment);
  void acknowledge(std::uint64_t transmission);
  void tell_window_later();
  void watch_timeout();
  void consume(std::uint64_t until);
  std::uint64_t edge() const;

  SimFabric& fabric_;
  TcpModelOptions options_;
  FabricNode& source_;
  FabricNode& target_;
  TcpSender sender_;
  std::function<void()> sent_;
  std::function<void()> arrival_;
  std::deque<Frame> frames_;                      ///< written and not yet taken
  std::map<std::uint64_t, std::uint64_t> early_;  ///< segments beyond a gap
  std::uint64_t arrived_ = 0;                     ///< the stream without gap
  std::uint64_t consumed_ = 0;
  std::uint64_t edge_told_;
  std::uint64_t last_begin_ = 0;  ///< of the last frame written
  TimePoint last_arrival_;
  TimePoint timer_at_ = time_point_max;
  bool finishing_ = false;
  bool finished_ = false;  ///< the reading end has heard of it
  bool abandoned_ = false;
};

}  // namespace stagger
