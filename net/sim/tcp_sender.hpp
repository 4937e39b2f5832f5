#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "net/time.hpp"

namespace stagger {

struct TcpModelOptions {
  std::uint64_t segment_bytes = 1448;  ///< of the stream, in one segment
  std::uint64_t header_bytes = 66;     ///< Ethernet, IPv4 and TCP with time stamps: of each segment
  std::uint64_t initial_segments = 10;                        ///< of the congestion window
  std::uint64_t receive_bytes_max = std::uint64_t{4} << 20;   ///< what a receiver keeps unread
  std::uint64_t unsent_bytes_max = std::uint64_t{128} << 10;  ///< of a send that has returned
  Duration timeout_min = 200ms;  ///< without acknowledgement, before all is taken for lost
  Duration probe_margin = 8ms;   ///< beyond two round trips, before the last segment is sent again
};

/// What one end of a TCP connection may put on the wire, and when it sends again. Pure.
///
/// TCP Reno (RFC 5681) as it is on Linux, with selective acknowledgements: every transmission has a
/// number and is acknowledged by it; paths keep order, so a transmission is lost as soon as a later
/// one was acknowledged (RFC 8985 without reordering). The window halves once per round trip with
/// losses. A tail that got lost is found by a probe (RFC 8985), then by the timeout (RFC 6298).
class TcpSender {
 public:
  struct Segment {
    std::uint64_t begin = 0;  ///< of the stream
    std::uint64_t end = 0;
    std::uint64_t transmission = 0;
  };

  explicit TcpSender(const TcpModelOptions& options);

  /// The stream goes on for so many bytes.
  void write(std::uint64_t bytes) { written_ += bytes; }

  /// What was not sent of the stream from here on never will be.
  void cut(std::uint64_t from) { written_ = from > next_ ? from : next_; }

  /// The receiver has room for the stream up to here. Never shrinks.
  void open_window(std::uint64_t edge) { edge_ = edge > edge_ ? edge : edge_; }

  /// The next segment that may be sent now; it counts as sent.
  std::optional<Segment> next(TimePoint now);

  void acknowledged(std::uint64_t transmission, TimePoint now);

  /// When timed_out() is due; time_point_max when nothing is under way. Moves with each call of the
  /// others.
  TimePoint timeout_at() const;

  void timed_out(TimePoint now);

  std::uint64_t written() const { return written_; }

  /// Written and never sent.
  std::uint64_t unsent() const { return written_ - next_; }

  bool all_acknowledged() const { return unsent() == 0 && flight_.empty() && lost_.empty(); }

  std::uint64_t window_bytes() const { return window_; }

  Duration round_trip() const { return smooth_; }

  std::uint64_t retransmissions() const { return retransmissions_; }

  std::uint64_t timeouts() const { return timeouts_; }

 private:
  struct Sent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    TimePoint at;
  };

  Segment transmit(std::uint64_t begin, std::uint64_t end, TimePoint now);
  void sample(Duration round_trip);
  void grow(std::uint64_t bytes);
  void lose_before(std::uint64_t transmission);
  void reduce();
  void lose(std::map<std::uint64_t, Sent>::iterator sent);
  Duration timeout() const;
  bool probing() const;

  TcpModelOptions options_;
  std::uint64_t written_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t edge_;
  std::map<std::uint64_t, Sent> flight_;         ///< by transmission
  std::map<std::uint64_t, std::uint64_t> lost_;  ///< begin to end, to be sent again
  std::uint64_t flight_bytes_ = 0;
  std::uint64_t transmission_ = 0;
  std::uint64_t recovery_ = 0;  ///< the last transmission before the window was reduced
  std::uint64_t window_;
  std::uint64_t threshold_;
  bool limited_ = false;  ///< by the window, not by what there is to send
  bool probed_ = false;
  bool urgent_ = false;  ///< the probe goes out whatever the window
  unsigned backed_off_ = 0;
  TimePoint progress_at_;  ///< the timers count from here
  TimePoint sent_at_;
  Duration smooth_{0};
  Duration deviation_{0};
  std::uint64_t retransmissions_ = 0;
  std::uint64_t timeouts_ = 0;
};

}  // namespace stagger
