#include "net/real/steady_clock.hpp"

#include <cerrno>
#include <ctime>
#include <system_error>

#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

int open_timer() {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  return timer;
}

timespec to_timespec(TimePoint time) {
  // A time of zero would disarm the timer; what is past rings at once.
  const std::int64_t total = std::max<std::int64_t>(1, time.time_since_epoch().count());
  return timespec{.tv_sec = total / 1'000'000'000, .tv_nsec = total % 1'000'000'000};
}

}  // namespace

SteadyClock::SteadyClock(boost::asio::io_context& context)
    : executor_(context.get_executor()), timer_(context, open_timer()) {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

SteadyClock::~SteadyClock() = default;

TimePoint SteadyClock::now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint{std::chrono::seconds{now.tv_sec} + Duration{now.tv_nsec}};
}

Task<void> SteadyClock::sleep_until(TimePoint wake_at) {
  if (wake_at <= now()) co_return;
  Waiter waiter(executor_);
  const Alarm alarm(*this, waiter, wake_at);
  co_await waiter.wait();
}

void SteadyClock::arm(Waiter& waiter, TimePoint wake_at) {
  timers_.arm(waiter, wake_at);
  schedule();
}

void SteadyClock::disarm(Waiter& waiter) {
  timers_.disarm(waiter);
  if (timers_.empty()) stop();
}

/// The system's timer is set for the earliest waiter or earlier: one that rings for nobody is set
/// anew then.
void SteadyClock::schedule() {
  const std::optional<TimePoint> next = timers_.next();
  if (!next) return stop();
  if (!set_for_ || *next < *set_for_) {
    const itimerspec spec{.it_interval = {}, .it_value = to_timespec(*next)};
    const int set = timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
    CHECK_EQ(set, 0);
    set_for_ = next;
  }
  if (waiting_) return;
  waiting_ = true;
  timer_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [this, generation = ++generation_](boost::system::error_code error) {
        if (!error && generation == generation_) ring();
      });
}

/// Without waiters the loop must be able to run out of work.
void SteadyClock::stop() {
  if (!waiting_) return;
  waiting_ = false;
  ++generation_;
  timer_.cancel();
}

void SteadyClock::ring() {
  waiting_ = false;
  set_for_.reset();
  std::uint64_t expirations = 0;
  const ssize_t got = read(timer_.native_handle(), &expirations, sizeof(expirations));
  CHECK(got > 0 || errno == EAGAIN, "the timer cannot be read", errno);
  const TimePoint time = now();
  while (timers_.next().value_or(time_point_max) <= time)
    timers_.fire_next();
  schedule();
}

}  // namespace stagger
