#include "net/sim/compute.hpp"

#include <exception>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

SimCompute::SimCompute(Executor executor, SimClock& clock, Options options, SimRandom random)
    : executor_(std::move(executor)), clock_(clock), options_(options), random_(random) {
  CHECK(options_.scale > 0 && options_.jitter >= 0, "times only pass forwards");
}

Task<void> SimCompute::run(std::function<void()> work, Duration nominal) {
  co_await take_turn();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  const Duration duration = charged(nominal);
  if (duration > Duration{0}) {
    Waiter done(executor_);
    const Alarm alarm(clock_, done, clock_.now() + duration);
    co_await done.wait_uninterrupted();
  }
  pass_turn();
  if (failure) std::rethrow_exception(failure);
}

Task<void> SimCompute::take_turn() {
  if (!std::exchange(busy_, true)) co_return;
  Waiter waiter(executor_);
  queue_.push_back(&waiter);
  try {
    co_await waiter.wait();
  } catch (...) {
    queue_.remove(&waiter);
    if (waiter.woken()) pass_turn();  // the turn came together with the cancellation
    throw;
  }
}

void SimCompute::pass_turn() {
  busy_ = !queue_.empty();
  if (!busy_) return;
  Waiter* const next = queue_.front();
  queue_.pop_front();
  next->wake(Wake::signalled);
}

Duration SimCompute::charged(Duration nominal) {
  const double noise = options_.jitter > 0 ? options_.jitter * random_.uniform() : 0.0;
  const double factor = options_.scale * (1 + noise);
  return factor == 1.0 ? nominal : from_seconds(to_seconds(nominal) * factor);
}

}  // namespace stagger
