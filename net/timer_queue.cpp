#include "net/timer_queue.hpp"

#include "observability/check.hpp"

namespace stagger {

void TimerQueue::arm(Waiter& waiter, TimePoint wake_at) {
  const Key key{wake_at, sequence_++};
  CHECK(armed_.emplace(&waiter, key).second, "a waiter is armed twice");
  entries_.emplace(key, &waiter);
}

void TimerQueue::disarm(Waiter& waiter) {
  const auto armed = armed_.find(&waiter);
  if (armed == armed_.end()) return;
  entries_.erase(armed->second);
  armed_.erase(armed);
}

void TimerQueue::call(TimePoint call_at, std::function<void()> action) {
  entries_.emplace(Key{call_at, sequence_++}, std::move(action));
}

std::optional<TimePoint> TimerQueue::next() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.begin()->first.first;
}

void TimerQueue::fire_next() {
  CHECK(!entries_.empty(), "nothing to fire");
  auto entry = entries_.extract(entries_.begin());
  if (Waiter* const* const waiter = std::get_if<Waiter*>(&entry.mapped())) {
    armed_.erase(*waiter);
    (*waiter)->wake(Wake::deadline);
  } else {
    std::get<std::function<void()>>(entry.mapped())();
  }
}

}  // namespace stagger
