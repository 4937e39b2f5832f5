#include "net/waiter.hpp"

#include <string>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include "net/event.hpp"
#include "net/scope.hpp"
#include "net/sim/clock.hpp"

namespace stagger {
namespace {

class WaitTest : public testing::Test {
 protected:
  void settle() {
    context_.restart();
    context_.poll();
  }

  boost::asio::io_context context_{1};
  TaskScope scope_{context_.get_executor(), "test"};
  std::vector<std::string> events_;
};

using Waiting = WaitTest;

Task<void> wait_and_note(Waiter& waiter, std::vector<std::string>& events) {
  try {
    const Wake wake = co_await waiter.wait();
    events.emplace_back(wake == Wake::signalled ? "signalled" : "deadline");
  } catch (const boost::system::system_error& error) {
    events.emplace_back(
        error.code() == boost::asio::error::operation_aborted ? "aborted" : "other error");
    throw;
  }
}

Task<void> wait_uninterrupted_and_note(Waiter& waiter, std::vector<std::string>& events) {
  co_await waiter.wait_uninterrupted();
  events.emplace_back("woken");
}

TEST_F(Waiting, resumes_on_a_later_turn_and_not_inside_wake) {
  Waiter waiter(context_.get_executor());
  scope_.spawn("wait", wait_and_note(waiter, events_));
  settle();
  EXPECT_TRUE(events_.empty());
  waiter.wake(Wake::signalled);
  EXPECT_TRUE(events_.empty());
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"signalled"});
}

TEST_F(Waiting, passes_at_once_when_it_was_woken_before) {
  Waiter waiter(context_.get_executor());
  waiter.wake(Wake::deadline);
  waiter.wake(Wake::signalled);  // the first reason counts
  scope_.spawn("wait", wait_and_note(waiter, events_));
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"deadline"});
}

TEST_F(Waiting, throws_operation_aborted_when_its_task_is_cancelled) {
  Waiter waiter(context_.get_executor());
  scope_.spawn("wait", wait_and_note(waiter, events_));
  settle();
  scope_.cancel();
  settle();
  waiter.wake(Wake::signalled);  // too late, and harmless
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"aborted"});
  EXPECT_EQ(scope_.failure(), nullptr);
}

TEST_F(Waiting, keeps_waiting_uninterrupted_when_its_task_is_cancelled) {
  Waiter waiter(context_.get_executor());
  scope_.spawn("wait", wait_uninterrupted_and_note(waiter, events_));
  settle();
  scope_.cancel();
  settle();
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(scope_.size(), 1U);
  waiter.wake(Wake::signalled);
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"woken"});
}

TEST_F(Waiting, keeps_the_loop_running_while_somebody_waits) {
  Waiter waiter(context_.get_executor());
  scope_.spawn("wait", wait_and_note(waiter, events_));
  settle();
  EXPECT_FALSE(context_.stopped());
  waiter.wake(Wake::signalled);
  settle();
  EXPECT_TRUE(context_.stopped());
}

using Announcement = WaitTest;

Task<void> wait_for_event(Event& event, std::vector<std::string>& events, std::string name) {
  co_await event.wait();
  events.push_back(std::move(name));
}

Task<void> wait_for_event_until(
    Event& event, Clock& clock, TimePoint deadline, std::vector<std::string>& events) {
  const bool set = co_await event.wait_until(clock, deadline);
  events.emplace_back(set ? "set" : "late");
}

TEST_F(Announcement, releases_all_waiters_in_order_even_when_reset_at_once) {
  Event event(context_.get_executor());
  scope_.spawn("first", wait_for_event(event, events_, "first"));
  scope_.spawn("second", wait_for_event(event, events_, "second"));
  settle();
  event.set();
  event.reset();
  settle();
  EXPECT_EQ(events_, (std::vector<std::string>{"first", "second"}));
  EXPECT_FALSE(event.is_set());
}

TEST_F(Announcement, lets_later_waiters_pass_until_it_is_reset) {
  Event event(context_.get_executor());
  event.set();
  scope_.spawn("passes", wait_for_event(event, events_, "passes"));
  settle();
  event.reset();
  scope_.spawn("stays", wait_for_event(event, events_, "stays"));
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"passes"});
  scope_.cancel();
  settle();
  EXPECT_EQ(scope_.size(), 0U);
  event.set();  // the cancelled waiter has left the list
}

TEST_F(Announcement, says_when_the_deadline_came_first) {
  SimClock clock(context_.get_executor());
  Event event(context_.get_executor());
  scope_.spawn("late", wait_for_event_until(event, clock, TimePoint{1s}, events_));
  scope_.spawn("in time", wait_for_event_until(event, clock, TimePoint{2s}, events_));
  settle();
  clock.fire_next();
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"late"});
  event.set();
  settle();
  EXPECT_EQ(events_, (std::vector<std::string>{"late", "set"}));
  EXPECT_FALSE(clock.next().has_value());  // the second deadline was disarmed
}

}  // namespace
}  // namespace stagger
