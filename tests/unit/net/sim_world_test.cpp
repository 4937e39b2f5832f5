#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/event.hpp"
#include "net/sim/world.hpp"
#include "tests/unit/net/frames.hpp"

namespace stagger {
namespace {

Task<void> wait_for(Event& event) {
  co_await event.wait();
}

Task<void> sleep_until(Clock& clock, TimePoint time) {
  co_await clock.sleep_until(time);
}

Task<void> set_at(Event& event, Clock& clock, TimePoint time) {
  co_await clock.sleep_until(time);
  event.set();
}

Task<void> fail_at(Clock& clock, TimePoint time) {
  co_await clock.sleep_until(time);
  throw std::runtime_error("the task failed");
}

Task<void> beat(Clock& clock) {
  while (true)
    co_await clock.sleep_until(clock.now() + 1s);
}

/// A small program with chance in it: workers that push frames at a server, which answers each.
Task<void> serve(Host host, std::unique_ptr<Connection> connection) {
  while (true) {
    Result<TestFrame> frame = co_await receive_frame(*connection, time_point_max, 1s);
    if (!frame) co_return;
    co_await host.compute.run([] {}, 50us);
    const Result<void> sent = co_await send_frame(*connection, std::move(*frame), 1s);
    if (!sent) co_return;
  }
}

Task<void> accept_workers(Host host, TaskScope& sessions, int workers) {
  auto listener = host.network.listen(Endpoint{.host = "ps", .port = 7000}).value();
  for (int i = 0; i < workers; ++i) {
    auto connection = co_await listener->accept();
    sessions.spawn("session", serve(host, std::move(connection.value())));
  }
}

Task<void> work(Host host, int worker) {
  const Endpoint remote{.host = "ps", .port = 7000};
  auto connection = co_await host.network.connect(remote, time_point_max);
  for (std::uint64_t i = 0; i < 20; ++i) {
    co_await host.compute.run([] {}, Duration{100us * (worker + 1)});
    TestFrame frame = make_frame(2, 64, i * 100 + static_cast<std::uint64_t>(worker));
    (co_await send_frame(**connection, std::move(frame), 1s)).value();
    (co_await receive_frame(**connection, time_point_max, 1s)).value();
  }
}

struct Outcome {
  std::uint64_t hash = 0;
  TimePoint end;
  std::uint64_t events = 0;

  bool operator==(const Outcome&) const = default;
};

Outcome run_program(std::uint64_t seed, const WorldOptions& options) {
  constexpr int workers = 5;
  SimWorld world(seed, options);
  TaskScope scope(world.executor(), "program");
  scope.spawn("accept_workers", accept_workers(world.host("ps"), scope, workers));
  for (int worker = 0; worker < workers; ++worker) {
    scope.spawn("work", work(world.host("w" + std::to_string(worker)), worker));
  }
  world.run(scope);
  EXPECT_EQ(scope.failure(), nullptr);
  return Outcome{.hash = world.trace_hash(), .end = world.clock().now(), .events = world.events()};
}

TEST(SimWorld, same_seed_gives_the_same_trace_and_another_seed_another) {
  WorldOptions options;
  options.fabric.jitter_max = 30us;
  options.compute_jitter = 0.2;
  const Outcome first = run_program(1, options);
  EXPECT_EQ(first, run_program(1, options));
  EXPECT_NE(first.hash, run_program(2, options).hash);
  EXPECT_GT(first.events, 500U);
}

TEST(SimWorld, without_jitter_chance_plays_no_part) {
  EXPECT_EQ(run_program(1, {}), run_program(2, {}));
}

TEST(SimWorld, trace_shows_what_is_added_to_it) {
  SimWorld one(1);
  SimWorld other(1);
  EXPECT_EQ(one.trace_hash(), other.trace_hash());
  one.trace("a");
  other.trace("b");
  EXPECT_NE(one.trace_hash(), other.trace_hash());
}

TEST(SimWorld, time_jumps_to_the_next_timer) {
  SimWorld world(1);
  const TimePoint year{std::chrono::hours(24 * 365)};
  world.run("sleeper", sleep_until(world.clock(), year));
  EXPECT_EQ(world.clock().now(), year);
  EXPECT_EQ(world.events(), 1U);
}

TEST(SimWorld, run_until_stops_at_the_time_with_everything_done_up_to_it) {
  SimWorld world(1);
  Event event(world.executor());
  TaskScope scope(world.executor(), "test");
  scope.spawn("set", set_at(event, world.clock(), TimePoint{2s}));
  world.run_until(TimePoint{1999ms});
  EXPECT_FALSE(event.is_set());
  EXPECT_EQ(world.clock().now(), TimePoint{1999ms});
  world.run_until(TimePoint{2s});
  EXPECT_TRUE(event.is_set());
  EXPECT_EQ(scope.size(), 0U);
}

TEST(SimWorld, run_until_idle_leaves_nothing_to_do) {
  SimWorld world(1);
  Event event(world.executor());
  TaskScope scope(world.executor(), "test");
  scope.spawn("set", set_at(event, world.clock(), TimePoint{5s}));
  scope.spawn("wait", wait_for(event));
  world.run_until_idle();
  EXPECT_EQ(scope.size(), 0U);
  EXPECT_EQ(world.clock().now(), TimePoint{5s});
}

TEST(SimWorld, deadlock_is_detected_and_names_who_waits) {
  SimWorld world(1);
  Event never(world.executor());
  TaskScope scope(world.executor(), "test");
  scope.spawn("reader", wait_for(never));
  scope.spawn("sleeper", sleep_until(world.clock(), TimePoint{1500ms}));
  scope.spawn("writer", wait_for(never));
  try {
    world.run(scope);
    FAIL() << "did not notice";
  } catch (const Deadlock& deadlock) {
    EXPECT_STREQ(
        deadlock.what(), "the simulation stands still at 1.500000 s; waiting: reader writer");
  }
  never.set();
  world.run(scope);
}

TEST(SimWorld, task_that_deadlocks_alone_is_cancelled_and_reported) {
  SimWorld world(1);
  Event never(world.executor());
  EXPECT_THROW(world.run("waits", wait_for(never)), Deadlock);
}

TEST(SimWorld, limit_ends_a_run_that_only_beats) {
  SimWorld world(1);
  EXPECT_THROW(world.run("beat", beat(world.clock()), TimePoint{100s}), Deadlock);
  EXPECT_EQ(world.clock().now(), TimePoint{100s});
}

TEST(SimWorld, failure_of_the_task_is_rethrown) {
  SimWorld world(1);
  EXPECT_THROW(world.run("fails", fail_at(world.clock(), TimePoint{1s})), std::runtime_error);
}

TEST(SimWorld, every_node_has_a_seed_of_its_own) {
  SimWorld world(1);
  SimWorld other(2);
  EXPECT_NE(world.host("a").seed, world.host("b").seed);
  EXPECT_NE(world.host("a").seed, other.host("a").seed);
  EXPECT_EQ(world.host("a").seed, SimWorld(1).host("a").seed);
}

TEST(SimWorld, log_lines_carry_virtual_time) {
  std::vector<std::string> lines;
  WorldOptions options;
  options.log_sink = [&lines](std::string_view line) {
    lines.emplace_back(line);
  };
  SimWorld world(1, options);
  world.run_until(TimePoint{1250ms});
  world.host("ps").log.warning("late");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("1.250000"), std::string::npos);
  EXPECT_NE(lines[0].find("late"), std::string::npos);
}

}  // namespace
}  // namespace stagger
