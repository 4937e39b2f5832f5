#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "net/time.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// What is to happen when, in order of time and, within one time, of arming. It knows no "now":
/// both clocks use it.
///
/// For:     SteadyClock and SimClock.
/// Owner:   the clock.
/// Thread:  the loop.
/// Cancel:  disarm() takes a waiter out; a call cannot be taken back.
/// Failure: none.
class TimerQueue {
 public:
  /// Wakes `waiter` with Wake::deadline. REQUIRES that it is not armed.
  void arm(Waiter& waiter, TimePoint wake_at);

  /// Does nothing when the waiter has been fired.
  void disarm(Waiter& waiter);

  /// Calls `action`, which may arm, disarm and add calls.
  void call(TimePoint call_at, std::function<void()> action);

  bool empty() const { return entries_.empty(); }

  std::optional<TimePoint> next() const;

  /// REQUIRES !empty(). Fires the earliest entry.
  void fire_next();

 private:
  using Key = std::pair<TimePoint, std::uint64_t>;

  std::map<Key, std::variant<Waiter*, std::function<void()>>> entries_;
  std::unordered_map<const Waiter*, Key> armed_;
  std::uint64_t sequence_ = 0;
};

}  // namespace stagger
