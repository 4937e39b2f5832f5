#pragma once

#include <cstdint>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "net/clock.hpp"
#include "net/timer_queue.hpp"

namespace stagger {

/// CLOCK_MONOTONIC, with nanosecond timers (timerfd): a turn begins when it is due, not at the next
/// millisecond.
///
/// Owner:   RealHost. The context must not run after the clock has died.
/// Thread:  now() from any; the rest on the loop. Made by the loop's thread, whose timer slack it
/// sets to 1 ns. Failure: a constructor that gets no timerfd throws system_error.
class SteadyClock final : public Clock {
 public:
  explicit SteadyClock(boost::asio::io_context& context);
  ~SteadyClock();
  SteadyClock(const SteadyClock&) = delete;
  SteadyClock& operator=(const SteadyClock&) = delete;

  TimePoint now() const override;
  Task<void> sleep_until(TimePoint wake_at) override;
  void arm(Waiter& waiter, TimePoint wake_at) override;
  void disarm(Waiter& waiter) override;

 private:
  void schedule();
  void stop();
  void ring();

  Executor executor_;
  boost::asio::posix::stream_descriptor timer_;
  TimerQueue timers_;
  std::optional<TimePoint> set_for_;
  std::uint64_t generation_ = 0;
  bool waiting_ = false;
};

}  // namespace stagger
