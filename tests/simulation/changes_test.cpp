#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

namespace stagger {
namespace {

using testing::HasSubstr;

Config change_config() {
  Config config = synthetic_config();
  config.cluster.workers = 4;
  config.job.iterations = 80;
  return config;
}

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

/// The rounds that the plans of a run prescribe, by group.
std::map<std::uint32_t, std::vector<std::uint64_t>> rounds_of(
    const PlanHistory& plans, std::uint64_t last) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> rounds;
  for (std::uint64_t j = 1; j <= last; ++j) {
    for (const GroupId group : due_groups(plans.at(Iteration(j)), Iteration(j))) {
      rounds[group.value()].push_back(j);
    }
  }
  return rounds;
}

std::uint64_t furthest(SimCluster& cluster) {
  std::uint64_t iteration = 0;
  for (std::uint32_t rank = 0; rank < cluster.config().cluster.workers; ++rank) {
    iteration = std::max(iteration, cluster.worker(rank).iteration().value());
  }
  return iteration;
}

/// Every window of T_old + T_new iterations around a change has a round of every group, and every
/// round was closed.
void expect_no_group_starves(SimCluster& cluster, std::uint64_t period_sum_max) {
  const std::uint64_t last = cluster.server().status().last_iteration.value();
  std::uint64_t total = 0;
  for (const auto& [group, iterations] : rounds_of(cluster.server().plans(), last)) {
    total += iterations.size();
    std::uint64_t before = 0;
    for (const std::uint64_t iteration : iterations) {
      EXPECT_LE(iteration - before, period_sum_max) << "group " << group << " at " << iteration;
      before = iteration;
    }
    EXPECT_LE(last - before, period_sum_max) << "group " << group << " at the end";
  }
  EXPECT_EQ(cluster.server().status().rounds_closed, total + 3);
}

void change_to(SimCluster& cluster, std::uint32_t period) {
  const std::uint32_t before = cluster.server().plans().latest().policy.period;
  const std::uint64_t at = furthest(cluster);
  const auto agreed = cluster.change_period(period);
  ASSERT_TRUE(agreed.has_value()) << agreed.error().detail;
  EXPECT_GT(agreed->value(), at);
  EXPECT_LE(agreed->value(), at + 2 * std::max(before, period));
  EXPECT_EQ(cluster.server().plans().latest().policy.period, period);
  EXPECT_EQ(cluster.server().plans().latest().first_iteration, *agreed);
}

TEST(Changes, of_the_period_take_place_in_mid_run_and_refuse_no_frame) {
  for (const UpdateRule rule :
       {UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      Config config = change_config();
      config.sync.rule = rule;
      SimCluster::Options options;
      options.seed = seed;
      SimCluster cluster(config, data(), options);
      cluster.start_all();
      cluster.run_until_iteration(0, 15);
      change_to(cluster, 5);
      cluster.run_until_iteration(0, 40);
      change_to(cluster, 2);
      cluster.run_to_end();
      EXPECT_EQ(cluster.refused_frames(), 0U);
      EXPECT_EQ(cluster.metrics().period_iterations.value(), 2.0);
      EXPECT_EQ(cluster.metrics().plan_version.value(), 3.0);
      expect_no_group_starves(cluster, 3 + 5);
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(cluster.end_of_worker(rank), std::nullopt);
      }
    }
  }
}

TEST(Changes, in_quick_succession_queue_up_and_starve_no_group) {
  SimCluster cluster(change_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(2, 10);
  for (const std::uint32_t period : {7U, 1U, 4U, 2U}) {
    ASSERT_TRUE(cluster.change_period(period).has_value());
  }
  cluster.run_to_end();
  EXPECT_EQ(cluster.refused_frames(), 0U);
  EXPECT_EQ(cluster.server().plans().plans().size(), 5U);
  expect_no_group_starves(cluster, 3 + 7);
}

TEST(Changes, that_are_impossible_change_nothing_and_say_why) {
  SimCluster cluster(change_config(), data());
  const auto too_early = cluster.change_period(4);
  ASSERT_FALSE(too_early.has_value());
  EXPECT_THAT(too_early.error().detail, HasSubstr("not started"));
  cluster.start_all();
  cluster.run_until_iteration(0, 10);
  const auto zero = cluster.change_period(0);
  ASSERT_FALSE(zero.has_value());
  EXPECT_THAT(zero.error().detail, HasSubstr("period"));
  EXPECT_EQ(cluster.server().plans().plans().size(), 1U);
  cluster.run_until_iteration(0, 80);
  const auto too_late = cluster.change_period(4);
  ASSERT_FALSE(too_late.has_value());
  EXPECT_THAT(too_late.error().detail, HasSubstr("training ends at 80"));
  cluster.run_to_end();
  const auto over = cluster.change_period(4);
  ASSERT_FALSE(over.has_value());
  EXPECT_THAT(over.error().detail, HasSubstr("ended"));
  EXPECT_EQ(cluster.server().plans().plans().size(), 1U);
}

TEST(Changes, of_the_period_are_refused_under_bsp) {
  Config config = change_config();
  config.sync.strategy = Strategy::bsp;
  config.sync.period = 1;
  SimCluster cluster(config, data());
  cluster.start_all();
  cluster.run_until_iteration(0, 5);
  const auto refused = cluster.change_period(4);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().detail, HasSubstr("bsp"));
  cluster.run_to_end();
}

TEST(Changes, come_through_when_a_worker_dies_in_the_middle) {
  SimCluster cluster(change_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(0, 15);
  cluster.world().set_clogged("worker3", true);
  cluster.run_for(1ms);
  const auto agreed = cluster.change_period(5);
  ASSERT_TRUE(agreed.has_value()) << agreed.error().detail;
  cluster.run_to_end();
  EXPECT_EQ(cluster.state(3), Membership::State::gone);
  EXPECT_EQ(cluster.state(0), Membership::State::left);
  EXPECT_EQ(cluster.server().plans().latest().policy.period, 5U);
  expect_no_group_starves(cluster, 3 + 5);
}

TEST(Changes, stop_ends_every_worker_after_the_iteration_they_agree_on) {
  for (const UpdateRule rule : {UpdateRule::old_center, UpdateRule::post_step}) {
    Config config = change_config();
    config.sync.rule = rule;
    SimCluster cluster(config, data());
    cluster.start_all();
    cluster.run_until_iteration(1, 20);
    const std::uint64_t at = furthest(cluster);
    const auto last = cluster.stop();
    ASSERT_TRUE(last.has_value());
    EXPECT_GE(last->value(), at);
    EXPECT_LE(last->value(), at + 2 * 3);
    cluster.run_to_end();
    EXPECT_EQ(cluster.refused_frames(), 0U);
    EXPECT_EQ(cluster.server().status().iteration, *last);
    EXPECT_EQ(cluster.server().status().last_iteration, *last);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(cluster.state(rank), Membership::State::left);
      EXPECT_EQ(cluster.end_of_worker(rank), std::nullopt);
    }
    expect_no_group_starves(cluster, 3);
  }
}

TEST(Changes, stop_before_the_start_ends_the_run) {
  SimCluster cluster(change_config(), data());
  cluster.start_server();
  cluster.run_for(1s);
  EXPECT_TRUE(cluster.stop().has_value());
  cluster.run_to_end();
  EXPECT_FALSE(cluster.server().status().started);
}

TEST(Changes, abandoning_ends_the_server_without_its_workers) {
  SimCluster cluster(change_config(), data());
  cluster.start_all();
  cluster.run_until_iteration(1, 20);
  cluster.server().abandon();
  cluster.run_to_end();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(cluster.end_of_worker(rank).has_value());
  }
}

}  // namespace
}  // namespace stagger
