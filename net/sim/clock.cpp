#include "net/sim/clock.hpp"

#include <algorithm>
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

}  // namespace stagger
