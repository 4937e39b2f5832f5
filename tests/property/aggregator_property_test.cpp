#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/property/push_streams.hpp"

namespace stagger {
namespace {

Scenario pick_scenario() {
  Scenario scenario;
  scenario.workers = *rc::gen::inRange<std::uint32_t>(1, 9);
  scenario.period = *rc::gen::inRange<std::uint32_t>(1, 5);
  scenario.group_floats.resize(*rc::gen::inRange<std::size_t>(1, 6));
  for (std::size_t& floats : scenario.group_floats) {
    floats = *rc::gen::inRange<std::size_t>(1, 4 * streams_chunk_floats);
  }
  scenario.early_chunks_max = *rc::gen::inRange<std::size_t>(0, 6);
  scenario.last_iteration = *rc::gen::inRange<std::uint64_t>(1, 10);
  scenario.replies_before_forward = *rc::gen::arbitrary<bool>();
  scenario.rank_order = *rc::gen::arbitrary<bool>();
  scenario.seed = *rc::gen::arbitrary<std::uint64_t>();
  return scenario;
}

RC_GTEST_PROP(
    AggregatorLaws, order_and_bounded_memory_never_deadlock_and_sums_keep_the_planned_order, ()) {
  Scenario scenario = pick_scenario();
  for (std::uint64_t i = 0; i < 5; ++i) {
    Streams(scenario).run();
    ++scenario.seed;
  }
}

RC_GTEST_PROP(AggregatorLaws, hold_when_workers_die_at_any_moment, ()) {
  Scenario scenario = pick_scenario();
  scenario.deaths = *rc::gen::inRange<std::uint32_t>(1, 8);
  for (std::uint64_t i = 0; i < 5; ++i) {
    Streams(scenario).run();
    ++scenario.seed;
  }
}

TEST(AggregatorLaws, are_tried_on_runs_that_shed_chunks) {
  Scenario scenario{.workers = 4, .period = 2, .group_floats = {40, 40, 20}, .early_chunks_max = 1};
  int with_shedding = 0;
  for (scenario.seed = 1; scenario.seed <= 50; ++scenario.seed) {
    Streams streams(scenario);
    streams.run();
    if (streams.shed_something()) ++with_shedding;
  }
  EXPECT_GT(with_shedding, 10);
}

}  // namespace
}  // namespace stagger
