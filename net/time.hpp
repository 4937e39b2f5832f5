#pragma once

#include <chrono>
#include <cstdint>

/// Time as the engine counts it: monotonic nanoseconds since an origin that only Clock knows.
namespace stagger {

using Duration = std::chrono::nanoseconds;

/// Names the time line; it has no now(), so time can come from a Clock only.
struct MonotonicLine {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<MonotonicLine, Duration>;
  static constexpr bool is_steady = true;
};

using TimePoint = MonotonicLine::time_point;

using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr TimePoint time_point_max = TimePoint::max();

/// `now + wait`, or time_point_max where that would be past the end of time.
constexpr TimePoint deadline_after(TimePoint now, Duration wait) {
  return wait >= time_point_max - now ? time_point_max : now + wait;
}

constexpr double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

constexpr double to_microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// Rounds to the nearest nanosecond.
constexpr Duration from_seconds(double seconds) {
  return Duration{static_cast<Duration::rep>(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5))};
}

constexpr Duration from_microseconds(double microseconds) {
  return from_seconds(microseconds * 1e-6);
}

}  // namespace stagger
