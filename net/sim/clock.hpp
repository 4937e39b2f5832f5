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

/// How a node's clock is wrong: it may have begun at another time, and run at another rate.
struct ClockView {
  Duration offset{0};
  double drift_ppm = 0.0;  ///< it gains so many microseconds in a second; above -1e6

  /// What it shows when the world's says `world`. Never goes backwards.
  TimePoint shown(TimePoint world) const;

  /// The first moment of the world at which it shows `shown` or later; the end of time stays.
  TimePoint world(TimePoint shown) const;
};

/// A node's clock: the world's, as the node sees it. Timers go to the world's.
///
/// Owner:   SimWorld's node. Thread: the one that drives the world.
class SimNodeClock final : public Clock {
 public:
  SimNodeClock(SimClock& world, ClockView view) : world_(world), view_(view) {}

  TimePoint now() const override { return view_.shown(world_.now()); }

  Task<void> sleep_until(TimePoint wake_at) override {
    return world_.sleep_until(view_.world(wake_at));
  }

  void arm(Waiter& waiter, TimePoint wake_at) override { world_.arm(waiter, view_.world(wake_at)); }

  void disarm(Waiter& waiter) override { world_.disarm(waiter); }

 private:
  SimClock& world_;
  ClockView view_;
};

}  // namespace stagger
