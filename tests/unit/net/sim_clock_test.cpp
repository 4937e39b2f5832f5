#include <vector>

#include <gtest/gtest.h>

#include "net/sim/clock.hpp"
#include "net/sim/world.hpp"

namespace stagger {
namespace {

TEST(ClockView, shows_the_worlds_time_unless_it_is_told_otherwise) {
  const ClockView right;
  for (const Duration time : {0ns, 1ns, Duration(5s), Duration(36000000s)}) {
    EXPECT_EQ(right.shown(TimePoint{time}), TimePoint{time});
    EXPECT_EQ(right.world(TimePoint{time}), TimePoint{time});
  }
  EXPECT_EQ(right.world(time_point_max), time_point_max);
}

TEST(ClockView, has_another_origin_and_rate) {
  const ClockView fast{.offset = 3s, .drift_ppm = 50.0};
  EXPECT_EQ(fast.shown(TimePoint{}), TimePoint{Duration{3s}});
  EXPECT_EQ(fast.shown(TimePoint{Duration{10s}}), TimePoint{Duration{13s + 500us}});
  const ClockView slow{.offset = -3s, .drift_ppm = -50.0};
  EXPECT_EQ(slow.shown(TimePoint{Duration{10s}}), TimePoint{Duration{7s - 500us}});
}

TEST(ClockView, names_the_first_moment_at_which_a_time_is_shown) {
  for (const double drift : {-100.0, -50.0, 0.0, 33.3, 100.0}) {
    const ClockView view{.offset = -7s, .drift_ppm = drift};
    for (std::int64_t ns = -20'000; ns < 3'000'000'000'000; ns = ns * 2 + 12'345'678'901) {
      const TimePoint shown{Duration{ns}};
      const TimePoint world = view.world(shown);
      EXPECT_GE(view.shown(world), shown) << drift << ' ' << ns;
      EXPECT_LT(view.shown(world - 1ns), shown) << drift << ' ' << ns;
    }
  }
}

Task<void> sleep_to(Clock& clock, Clock& world, TimePoint wake_at, std::vector<TimePoint>& woken) {
  co_await clock.sleep_until(wake_at);
  woken = {clock.now(), world.now()};
}

TEST(SimNodeClock, wakes_when_it_shows_the_time_itself) {
  SimWorld world(1);
  world.add_node(
      "fast", {.egress = {}, .ingress = {}, .clock = {.offset = 1000s, .drift_ppm = 1e6}});
  Clock& fast = world.host("fast").clock;
  EXPECT_EQ(fast.now(), TimePoint{Duration{1000s}});
  std::vector<TimePoint> woken;
  world.run("sleep", sleep_to(fast, world.clock(), TimePoint{Duration{1010s}}, woken));
  EXPECT_EQ(woken, (std::vector{TimePoint{Duration{1010s}}, TimePoint{Duration{5s}}}));
}

Task<void> listen_in_vain(Host host, Result<FrameHead>& heard) {
  auto listener = host.network.listen({.host = "ps", .port = 7000}).value();
  auto connection = co_await listener->accept();
  heard = co_await connection.value()->receive_head(host.clock.now() + 2s);
}

Task<void> say_nothing(Host host) {
  const Endpoint ps{.host = "ps", .port = 7000};
  auto connection = co_await host.network.connect(ps, host.clock.now() + 1s);
  EXPECT_TRUE(connection.has_value());
  co_await host.clock.sleep_until(host.clock.now() + 100s);
}

TEST(SimNodeClock, is_the_one_that_deadlines_of_a_node_go_by) {
  SimWorld world(1);
  world.add_node("ps", {.egress = {}, .ingress = {}, .clock = {.offset = -50s}});
  world.add_node("worker", {.egress = {}, .ingress = {}, .clock = {.offset = 50s}});
  Result<FrameHead> heard = Error{.code = Errc::closed, .detail = "not heard"};
  TaskScope scope(world.executor(), "test");
  scope.spawn("listen", listen_in_vain(world.host("ps"), heard));
  scope.spawn("say nothing", say_nothing(world.host("worker")));
  world.run_until(TimePoint{Duration{1900ms}});
  EXPECT_EQ(heard.error().code, Errc::closed);
  world.run_until(TimePoint{Duration{2100ms}});
  EXPECT_EQ(heard.error().code, Errc::deadline);
  world.run(scope);
}

}  // namespace
}  // namespace stagger
