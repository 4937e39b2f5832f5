#include "net/event.hpp"

#include <utility>

namespace stagger {

namespace {

/// Takes a waiter out of the list when its wait ends by deadline or cancellation.
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

}  // namespace

void Event::set() {
  set_ = true;
  for (Waiter* const waiter : std::exchange(waiters_, {}))
    waiter->wake(Wake::signalled);
}

Task<void> Event::wait() {
  if (set_) co_return;
  Waiter waiter(executor_);
  const Parked parked(waiters_, waiter);
  co_await waiter.wait();
}

Task<bool> Event::wait_until(Clock& clock, TimePoint deadline) {
  if (set_) co_return true;
  Waiter waiter(executor_);
  const Parked parked(waiters_, waiter);
  const Alarm alarm(clock, waiter, deadline);
  co_return co_await waiter.wait() == Wake::signalled;
}

}  // namespace stagger
