#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <utility>

#include "net/task.hpp"
#include "net/waiter.hpp"
#include "observability/check.hpp"

namespace stagger {

/// A bounded queue between coroutines of one loop.
///
/// Owner:   the consumer's component; outlives both sides.
/// Thread:  the loop.
/// Cancel:  a cancelled push or pop throws operation_aborted and has not taken place.
/// Failure: push returns false, pop returns nullopt, once the channel is closed (pop after the rest
/// is drained).
template <class T>
class Channel {
 public:
  Channel(Executor executor, std::size_t capacity)
      : executor_(std::move(executor)), capacity_(capacity) {
    CHECK(capacity > 0);
  }

  /// Waits for room.
  Task<bool> push(T value) {
    while (!closed_ && items_.size() >= capacity_)
      co_await park(pushers_);
    if (closed_) co_return false;
    items_.push_back(std::move(value));
    wake_one(poppers_);
    co_return true;
  }

  /// False when full or closed; then `value` is untouched.
  bool try_push(T&& value) {
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    wake_one(poppers_);
    return true;
  }

  /// Queues beyond the capacity: for the few items that must not wait for bulk. False when closed.
  bool push_urgent(T value) {
    if (closed_) return false;
    items_.push_back(std::move(value));
    wake_one(poppers_);
    return true;
  }

  Task<std::optional<T>> pop() {
    while (!closed_ && items_.empty())
      co_await park(poppers_);
    if (items_.empty()) co_return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    wake_one(pushers_);
    co_return value;
  }

  void close() {
    closed_ = true;
    wake_all(pushers_);
    wake_all(poppers_);
  }

  bool closed() const { return closed_; }

  std::size_t size() const { return items_.size(); }

  std::size_t capacity() const { return capacity_; }

 private:
  /// Takes a waiter out of its list, also when the wait throws; passes on a wake-up that a
  /// cancelled task cannot use.
  struct Parked {
    std::list<Waiter*>& waiters;
    Waiter& waiter;

    Parked(std::list<Waiter*>& list, Waiter& own) : waiters(list), waiter(own) {
      waiters.push_back(&waiter);
    }

    ~Parked() { waiters.remove(&waiter); }

    Parked(const Parked&) = delete;
    Parked& operator=(const Parked&) = delete;
  };

  Task<void> park(std::list<Waiter*>& waiters) {
    Waiter waiter(executor_);
    const Parked parked(waiters, waiter);
    try {
      co_await waiter.wait();
    } catch (...) {
      waiters.remove(&waiter);
      if (waiter.woken()) wake_one(waiters);
      throw;
    }
  }

  static void wake_one(std::list<Waiter*>& waiters) {
    if (waiters.empty()) return;
    Waiter* const waiter = waiters.front();
    waiters.pop_front();
    waiter->wake(Wake::signalled);
  }

  static void wake_all(std::list<Waiter*>& waiters) {
    while (!waiters.empty())
      wake_one(waiters);
  }

  Executor executor_;
  std::size_t capacity_;
  std::deque<T> items_;
  std::list<Waiter*> pushers_;
  std::list<Waiter*> poppers_;
  bool closed_ = false;
};

}  // namespace stagger
