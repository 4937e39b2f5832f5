#pragma once

#include <list>

#include "net/clock.hpp"
#include "net/task.hpp"
#include "net/time.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// A level that coroutines wait for: set() releases all waiters, and later ones pass at once until
/// reset().
///
/// Owner:   the component whose state it announces; outlives its waiters.
/// Thread:  the loop.
/// Cancel:  a cancelled wait throws operation_aborted.
class Event {
 public:
  explicit Event(Executor executor) : executor_(std::move(executor)) {}

  void set();

  void reset() { set_ = false; }

  bool is_set() const { return set_; }

  Task<void> wait();

  /// False when the deadline came first.
  Task<bool> wait_until(Clock& clock, TimePoint deadline);

 private:
  Executor executor_;
  std::list<Waiter*> waiters_;
  bool set_ = false;
};

}  // namespace stagger
