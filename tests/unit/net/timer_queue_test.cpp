#include "net/timer_queue.hpp"

#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace stagger {
namespace {

class Timers : public testing::Test {
 protected:
  void call(TimePoint time, int name) {
    timers_.call(time, [this, name] { fired_.push_back(name); });
  }

  void fire_all() {
    while (!timers_.empty())
      timers_.fire_next();
  }

  boost::asio::io_context context_{1};
  TimerQueue timers_;
  std::vector<int> fired_;
};

TEST_F(Timers, fire_by_time_and_then_in_the_order_of_arming) {
  call(TimePoint{3ns}, 5);
  call(TimePoint{1ns}, 1);
  call(TimePoint{2ns}, 3);
  call(TimePoint{1ns}, 2);
  call(TimePoint{2ns}, 4);
  EXPECT_EQ(timers_.next(), TimePoint{1ns});
  fire_all();
  EXPECT_EQ(fired_, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_FALSE(timers_.next().has_value());
}

TEST_F(Timers, wake_their_waiter_with_deadline) {
  Waiter waiter(context_.get_executor());
  timers_.arm(waiter, TimePoint{1ns});
  timers_.fire_next();
  EXPECT_TRUE(waiter.woken());
  timers_.disarm(waiter);  // late, and harmless
  timers_.arm(waiter, TimePoint{2ns});
  EXPECT_EQ(timers_.next(), TimePoint{2ns});
}

TEST_F(Timers, disarmed_waiters_stay_asleep) {
  Waiter first(context_.get_executor());
  Waiter second(context_.get_executor());
  timers_.arm(first, TimePoint{1ns});
  timers_.arm(second, TimePoint{1ns});
  timers_.disarm(first);
  fire_all();
  EXPECT_FALSE(first.woken());
  EXPECT_TRUE(second.woken());
}

TEST_F(Timers, calls_may_add_calls_for_the_same_time) {
  timers_.call(TimePoint{1ns}, [this] {
    fired_.push_back(1);
    call(TimePoint{1ns}, 3);
  });
  call(TimePoint{1ns}, 2);
  fire_all();
  EXPECT_EQ(fired_, (std::vector<int>{1, 2, 3}));
}

TEST_F(Timers, arming_twice_is_a_bug) {
  Waiter waiter(context_.get_executor());
  timers_.arm(waiter, TimePoint{1ns});
  EXPECT_DEATH(timers_.arm(waiter, TimePoint{2ns}), "armed twice");
}

}  // namespace
}  // namespace stagger
