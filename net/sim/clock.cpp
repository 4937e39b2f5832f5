#include "net/sim/clock.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

SimClock::SimClock(Executor executor) : executor_(std::move(executor)) {}

Task<void> SimClock::sleep_until(TimePoint wake_at) {
  if (wake_at <= now_) co_return;
  Waiter waiter(executor_);
  const Alarm alarm(*this, waiter, wake_at);
  co_await waiter.wait();
}

void SimClock::call_at(TimePoint time, std::function<void()> action) {
  timers_.call(time, std::move(action));
}

void SimClock::fire_next() {
  const std::optional<TimePoint> next = timers_.next();
  CHECK(next.has_value(), "time cannot go on: no timer");
  now_ = std::max(now_, *next);  // a deadline that had passed when it was armed fires now
  timers_.fire_next();
}

void SimClock::advance_to(TimePoint time) {
  CHECK(time <= timers_.next().value_or(time_point_max), "time would pass over a timer");
  now_ = std::max(now_, time);
}

TimePoint ClockView::shown(TimePoint world) const {
  const auto gained =
      std::floor(static_cast<double>(world.time_since_epoch().count()) * drift_ppm * 1e-6);
  return world + offset + Duration{static_cast<Duration::rep>(gained)};
}

TimePoint ClockView::world(TimePoint shown) const {
  constexpr TimePoint far = TimePoint{} + std::chrono::hours(24 * 365 * 100);
  if (shown > far) return time_point_max;
  const Duration without_offset = shown.time_since_epoch() - offset;
  const double rate = 1.0 + drift_ppm * 1e-6;
  TimePoint world{
      Duration{static_cast<Duration::rep>(static_cast<double>(without_offset.count()) / rate)}};
  while (this->shown(world) < shown)
    ++world;
  while (this->shown(world - 1ns) >= shown)
    --world;
  return world;
}

}  // namespace stagger
