#include "net/real/steady_clock.hpp"

#include <string>
#include <utility>
#include <vector>

#include "net/event.hpp"
#include "tests/unit/net/real_world.hpp"

namespace stagger {
namespace {

using RealClock = RealWorld;

Task<void> sleep_and_note(
    Clock& clock, TimePoint time, std::string name, std::vector<std::string>& events) {
  co_await clock.sleep_until(time);
  events.push_back(clock.now() < time ? name + " woke early" : name);
}

Task<void> wait_until_and_note(
    Event& event, Clock& clock, TimePoint deadline, std::vector<std::string>& events) {
  const bool set = co_await event.wait_until(clock, deadline);
  events.emplace_back(set ? "set" : "late");
}

Task<void> set_at(Clock& clock, TimePoint time, Event& event) {
  co_await clock.sleep_until(time);
  event.set();
}

Task<void> cancel_at(Clock& clock, TimePoint time, TaskScope& scope) {
  co_await clock.sleep_until(time);
  scope.cancel();
}

TEST_F(RealClock, sleepers_wake_in_order_of_time_and_never_early) {
  std::vector<std::string> events;
  const TimePoint begin = host_.clock.now();
  scope_.spawn("past", sleep_and_note(host_.clock, begin - 1s, "past", events));
  scope_.spawn("c", sleep_and_note(host_.clock, begin + 200ms, "c", events));
  scope_.spawn("a", sleep_and_note(host_.clock, begin + 100ms, "a", events));
  scope_.spawn("b", sleep_and_note(host_.clock, begin + 150ms, "b", events));
  run();
  EXPECT_EQ(events, (std::vector<std::string>{"past", "a", "b", "c"}));
}

TEST_F(RealClock, time_does_not_go_backwards) {
  TimePoint last = host_.clock.now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = host_.clock.now();
    ASSERT_LE(last, now);
    last = now;
  }
}

TEST_F(RealClock, deadline_that_was_not_needed_does_not_keep_the_loop_running) {
  // The run must end although the deadline is an hour away.
  std::vector<std::string> events;
  Event event(real_.executor());
  scope_.spawn("wait", wait_until_and_note(event, host_.clock, soon(3600s), events));
  scope_.spawn("set", set_at(host_.clock, soon(5ms), event));
  run();
  EXPECT_EQ(events, std::vector<std::string>{"set"});
}

TEST_F(RealClock, deadline_in_the_past_comes_at_once) {
  std::vector<std::string> events;
  Event never(real_.executor());
  scope_.spawn("wait", wait_until_and_note(never, host_.clock, TimePoint{}, events));
  run();
  EXPECT_EQ(events, std::vector<std::string>{"late"});
}

TEST_F(RealClock, cancelled_sleep_ends_and_nothing_fires_later) {
  std::vector<std::string> events;
  TaskScope sleepers(real_.executor(), "sleepers");
  sleepers.spawn("hour", sleep_and_note(host_.clock, soon(3600s), "hour", events));
  sleepers.spawn("forever", sleep_and_note(host_.clock, time_point_max, "forever", events));
  scope_.spawn("cancel", cancel_at(host_.clock, soon(5ms), sleepers));
  run();
  EXPECT_EQ(sleepers.size(), 0U);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace stagger
