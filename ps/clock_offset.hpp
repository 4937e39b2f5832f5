#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "net/time.hpp"

/// What the PS's clock says, by a worker's own. Pure.
namespace stagger {

/// Names the time line of the PS's Clock, so that a time of one clock is not taken for one of the
/// other.
struct PsLine {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<PsLine, Duration>;
  static constexpr bool is_steady = true;
};

using PsTime = PsLine::time_point;

/// The PS's own clock as everybody's. REQUIRES that `now` is of the PS's Clock.
constexpr PsTime as_ps_time(TimePoint now) {
  return PsTime{now.time_since_epoch()};
}

/// A question and its answer: each time as close to the wire as it could be taken.
struct ClockSample {
  TimePoint asked;     ///< the worker's clock, before the question left
  PsTime heard;        ///< the PS's, when it had come
  PsTime answered;     ///< the PS's, before the answer left
  TimePoint received;  ///< the worker's, when it had come
};

struct ClockReading {
  Duration offset{0};       ///< the PS's clock minus the worker's
  Duration uncertainty{0};  ///< the true offset is no further away; above 0

  bool operator==(const ClockReading&) const = default;
};

/// Estimates the PS's clock from samples.
///
/// A sample says that the offset was ((heard - asked) + (answered - received)) / 2, at most half
/// its round trip wrong, however unequal both ways were. Of each eight samples the one with the
/// least round trip is kept, for eight times eight. The clocks' skew is the middle of all slopes of
/// lines that pass what was kept within its error; the offset now is that of the kept sample from
/// which least can have changed since.
///
/// For:     Client.
/// Owner:   Client. Thread: any one. Cancel: nothing to cancel. Failure: none; samples that cannot
/// be are refused, and one that contradicts what was kept (a clock was set, a machine slept) makes
/// it begin anew.
///
/// The bound holds while the clocks' rates differ by at most skew_max and no clock jumps.
class ClockOffset {
 public:
  static constexpr double skew_max = 200e-6;  ///< two quartz clocks, each 100 ppm wrong

  /// False: refused. Times that run backwards, or are more than 36 years from their clock's origin;
  /// an answer that took longer than its question and answer together; an older answer than the
  /// last.
  bool add(const ClockSample& sample);

  /// None before the first sample.
  std::optional<ClockReading> at(TimePoint own) const;

  /// What the PS's clock says when the worker's says `own`, and the other way round.
  std::optional<PsTime> ps_time(TimePoint own) const;
  std::optional<TimePoint> own_time(PsTime time) const;

  /// Seconds that the PS's clock gains on the worker's in a second.
  double skew() const { return skew_; }

 private:
  /// Nanoseconds of the worker's clock, and of the difference to the PS's.
  struct Kept {
    std::int64_t at = 0;
    std::int64_t offset = 0;
    std::int64_t error = 0;

    bool contradicts(const Kept& other) const;
  };

  const Kept& best(std::int64_t own) const;
  double error_at(const Kept& kept, std::int64_t own) const;
  std::int64_t offset_at(const Kept& kept, std::int64_t own) const;
  bool fit();
  void begin_with(const Kept& sample);

  std::deque<Kept> kept_;              ///< by time; the last may still be replaced by a better one
  std::uint32_t samples_of_last_ = 0;  ///< from which the last was chosen
  std::optional<TimePoint> last_received_;
  double skew_ = 0.0;
  double skew_error_ = skew_max;
};

}  // namespace stagger
