#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/sim/compute.hpp"
#include "net/sim/world.hpp"

namespace stagger {
namespace {

struct Workshop {
  Workshop() : host(world.host("w0")) {}

  SimWorld world{1};
  Host host;
  std::vector<std::string> events;

  void note(const std::string& text) {
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(host.clock.now().time_since_epoch());
    events.push_back(text + " " + std::to_string(time.count()));
  }
};

Task<void> compute(Workshop& workshop, std::string name, Duration nominal) {
  const std::function<void()> work = [&workshop, name] {
    workshop.note("begin " + name);
  };
  co_await workshop.host.compute.run(work, nominal);
  workshop.note("end " + name);
}

Task<void> compute_failing(Workshop& workshop) {
  const std::function<void()> work = [] {
    throw std::runtime_error("bad work");
  };
  try {
    co_await workshop.host.compute.run(work, 5ms);
  } catch (const std::runtime_error& error) {
    workshop.note(error.what());
  }
}

TEST(SimCompute, overlapping_work_runs_one_at_a_time_in_call_order) {
  Workshop workshop;
  TaskScope scope(workshop.world.executor(), "test");
  scope.spawn("a", compute(workshop, "a", 10ms));
  scope.spawn("b", compute(workshop, "b", 0ms));
  scope.spawn("c", compute(workshop, "c", 5ms));
  workshop.world.run(scope);
  const std::vector<std::string> expected{
      "begin a 0", "end a 10", "begin b 10", "end b 10", "begin c 10", "end c 15"};
  EXPECT_EQ(workshop.events, expected);
}

TEST(SimCompute, throws_what_the_work_throws_and_goes_on) {
  Workshop workshop;
  TaskScope scope(workshop.world.executor(), "test");
  scope.spawn("fails", compute_failing(workshop));
  scope.spawn("next", compute(workshop, "next", 1ms));
  workshop.world.run(scope);
  const std::vector<std::string> expected{"begin next 5", "bad work 5", "end next 6"};
  std::vector<std::string> events = workshop.events;
  std::sort(events.begin(), events.end());
  std::vector<std::string> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(events, sorted);
}

TEST(SimCompute, cancel_takes_back_what_has_not_begun_and_waits_for_what_has) {
  Workshop workshop;
  TaskScope scope(workshop.world.executor(), "test");
  scope.spawn("a", compute(workshop, "a", 10ms));
  scope.spawn("b", compute(workshop, "b", 10ms));
  workshop.world.run_until(TimePoint{5ms});
  scope.cancel();
  workshop.world.run(scope);
  EXPECT_EQ(workshop.events, (std::vector<std::string>{"begin a 0", "end a 10"}));
  EXPECT_EQ(workshop.host.clock.now(), TimePoint{10ms});
}

TEST(SimCompute, slow_node_takes_longer) {
  SimWorld world(1);
  NodeOptions options;
  options.compute_scale = 2.5;
  world.add_node("slow", options);
  Host host = world.host("slow");
  world.run("compute", host.compute.run([] {}, 10ms));
  EXPECT_EQ(host.clock.now(), TimePoint{25ms});
}

}  // namespace
}  // namespace stagger
