#pragma once

#include "net/task.hpp"
#include "net/time.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// Tells the time and waits for it. The only source of time in the program.
///
/// For:     everything that measures or waits; reached through Host.
/// Owner:   the Host's creator; outlives every task that uses it.
/// Thread:  now() from any thread (a simulated clock has one); the rest on the loop.
/// Cancel:  a cancelled sleep throws operation_aborted; nothing fires later.
/// Failure: none. Time never goes backwards.
class Clock {
 public:
  virtual TimePoint now() const = 0;

  /// Returns at once when `wake_at` has passed. time_point_max sleeps until cancelled.
  virtual Task<void> sleep_until(TimePoint wake_at) = 0;

  /// Wakes `waiter` with Wake::deadline at `wake_at`, unless disarmed before. A waiter is armed at
  /// most once; whoever arms disarms before the waiter dies (Alarm does).
  virtual void arm(Waiter& waiter, TimePoint wake_at) = 0;
  virtual void disarm(Waiter& waiter) = 0;

 protected:
  ~Clock() = default;
};

/// Arms a waiter for its own lifetime. A deadline of time_point_max arms nothing.
class Alarm {
 public:
  Alarm(Clock& clock, Waiter& waiter, TimePoint wake_at) : clock_(clock), waiter_(waiter) {
    armed_ = wake_at != time_point_max;
    if (armed_) clock_.arm(waiter_, wake_at);
  }

  ~Alarm() {
    if (armed_) clock_.disarm(waiter_);
  }

  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  Clock& clock_;
  Waiter& waiter_;
  bool armed_ = false;
};

}  // namespace stagger
