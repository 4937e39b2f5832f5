#include <gtest/gtest.h>

#include "engine/simulation.hpp"
#include "tests/support/synthetic_data.hpp"

// What workers measure of their pushes, where every time is known.
namespace stagger {
namespace {

SimulationResult run(const Config& config, const NodeOptions& node = {}) {
  SimulationOptions options;
  options.node = node;
  return simulate(config, synthetic_dataset(synthetic_samples, 1), options);
}

NodeOptions node_of(double rate_bits_per_second) {
  const LinkOptions link{.rate_bits_per_second = rate_bits_per_second, .latency = 1ms};
  return {.egress = link, .ingress = link};
}

/// All groups of the three workers once in three iterations; the final round is no part of it.
constexpr std::uint64_t pushes = 3 * 3 * 12 / 3;

TEST(PushTimes, are_known_of_every_push_whatever_the_strategy_rule_and_admission) {
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    for (const Admission admission :
         {Admission::none, Admission::slots, Admission::grants, Admission::slots_grants}) {
      Config config = synthetic_config();
      config.sync.rule = rule;
      config.slots.admission = admission;
      const ServerTotals totals = run(config, node_of(1e6)).totals;
      EXPECT_EQ(totals.push.count(), pushes) << to_string(rule) << " " << to_string(admission);
      EXPECT_EQ(totals.ready_to_done.count(), pushes);
    }
  }
}

TEST(PushTimes, are_known_where_gradients_are_pushed) {
  Config config = synthetic_config();
  config.sync.strategy = Strategy::bsp;
  config.sync.period = 1;
  EXPECT_EQ(run(config).totals.push.count(), 3 * pushes);
}

TEST(PushTimes, hold_the_bytes_and_the_way_there_and_back) {
  // The way there and back over two links each of 1 ms; the smallest group's bytes beside that.
  const QuantileSketch fast = run(synthetic_config(), node_of(1e9)).totals.push;
  EXPECT_GE(fast.quantile(0.0), 0.004 * (1.0 - QuantileSketch::relative_error));
  const QuantileSketch slow = run(synthetic_config(), node_of(1e5)).totals.push;
  EXPECT_GT(slow.quantile(0.0), 2 * fast.quantile(0.0));
}

TEST(PushTimes, begin_after_the_turn_that_ready_times_wait_for) {
  Config config = synthetic_config();
  config.slots.admission = Admission::grants;
  const ServerTotals totals = run(config, node_of(1e6)).totals;
  // A turn is asked for and given over the same links.
  EXPECT_GE(
      totals.ready_to_done.quantile(0.0),
      (totals.push.quantile(0.0) + 0.004) * (1.0 - QuantileSketch::relative_error));
}

TEST(IterationTimes, are_those_after_the_first_of_all_workers) {
  const ServerTotals totals = run(synthetic_config()).totals;
  EXPECT_EQ(totals.iteration.count(), 3U * 11U);
  EXPECT_GE(totals.iteration_seconds, 33 * totals.iteration.quantile(0.0) * 0.99);
  EXPECT_LE(totals.iteration_seconds, 33 * totals.iteration.quantile(1.0) * 1.01);
}

}  // namespace
}  // namespace stagger
