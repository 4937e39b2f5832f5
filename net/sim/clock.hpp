#pragma once

#include <functional>
#include <optional>

#include "net/clock.hpp"
#include "net/timer_queue.hpp"

namespace stagger {

/// Virtual time: stands still while anything can run, then jumps to the next timer.
///
/// Owner:   SimWorld. Thread: the one that drives the world.
class SimClock final : public Clock {
 public:
  explicit SimClock(Executor executor);

  TimePoint now() const override { return now_; }

  Task<void> sleep_until(TimePoint wake_at) override;

  void arm(Waiter& waiter, TimePoint wake_at) override { timers_.arm(waiter, wake_at); }

  void disarm(Waiter& waiter) override { timers_.disarm(waiter); }

  /// Events of the simulated world itself, such as the arrival of a frame.
  void call_at(TimePoint time, std::function<void()> action);

  std::optional<TimePoint> next() const { return timers_.next(); }

  /// Moves to the earliest timer and fires it. REQUIRES that there is one.
  void fire_next();

  /// REQUIRES that no timer is earlier.
  void advance_to(TimePoint time);

 private:
  Executor executor_;
  TimerQueue timers_;
  TimePoint now_;
};

}  // namespace stagger
