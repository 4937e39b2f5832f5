#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"
#include "tests/support/wrapped_backend.hpp"

// Plans that follow what is measured while a run goes on.
namespace stagger {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t iterations = 400;

/// Computing takes `factor` times as long from an iteration on.
class PacedBackend final : public WrappedBackend {
 public:
  PacedBackend(std::unique_ptr<Backend> inner, double factor)
      : WrappedBackend(std::move(inner)), factor_(factor) {}

  std::size_t load(Iteration iteration, WorkerId rank) override {
    changed_ = iteration.value() > iterations / 4;
    return WrappedBackend::load(iteration, rank);
  }

  Duration forward_time(LayerRange layers) const override {
    return paced(WrappedBackend::forward_time(layers));
  }

  Duration backward_time(LayerRange layers) const override {
    return paced(WrappedBackend::backward_time(layers));
  }

 private:
  Duration paced(Duration nominal) const {
    return changed_ ? from_seconds(to_seconds(nominal) * factor_) : nominal;
  }

  double factor_;
  bool changed_ = false;
};

SimCluster::Options paced(double factor) {
  SimCluster::Options options;
  options.wrap = [factor](std::uint32_t, std::unique_ptr<Backend> inner) {
    return std::unique_ptr<Backend>(new PacedBackend(std::move(inner), factor));
  };
  return options;
}

Config drift_config() {
  Config config = synthetic_config();
  config.job.iterations = iterations;
  config.link = {.rate_bits_per_second = 2e6, .start_us = 0.0};
  config.timeouts.heartbeat = 10ms;
  return config;
}

Config auto_config() {
  Config config = drift_config();
  config.sync.period.reset();
  return config;
}

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

TEST(Drift, changes_nothing_where_nothing_drifts) {
  SimCluster cluster(auto_config(), data(), paced(1.0));
  cluster.start_all();
  cluster.run_to_end();
  EXPECT_TRUE(cluster.server().period_follows());
  EXPECT_EQ(cluster.server().plans().plans().size(), 1U);
}

TEST(Drift, raises_the_period_when_compute_gets_faster) {
  SimCluster cluster(auto_config(), data(), paced(0.3));
  cluster.start_all();
  cluster.run_to_end();
  const auto plans = cluster.server().plans().plans();
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_GT(plans[1].policy.period, plans[0].policy.period);
  EXPECT_GT(plans[1].first_iteration.value(), iterations / 4);
  EXPECT_THAT(cluster.log(), HasSubstr("requester=auto"));
  EXPECT_EQ(cluster.refused_frames(), 0U);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(iterations));
}

TEST(Drift, lowers_the_period_when_compute_gets_slower) {
  SimCluster cluster(auto_config(), data(), paced(4.0));
  cluster.start_all();
  cluster.run_to_end();
  const auto plans = cluster.server().plans().plans();
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_LT(plans[1].policy.period, plans[0].policy.period);
  EXPECT_GT(plans[1].first_iteration.value(), iterations / 4);
}

TEST(Drift, leaves_the_period_alone_once_somebody_has_set_it) {
  SimCluster cluster(auto_config(), data(), paced(0.3));
  cluster.start_all();
  cluster.run_until_iteration(0, 20);
  EXPECT_TRUE(cluster.server().period_follows());
  ASSERT_TRUE(cluster.change_period(2));
  EXPECT_FALSE(cluster.server().period_follows());
  cluster.run_to_end();
  EXPECT_EQ(cluster.server().plans().plans().size(), 2U);
  EXPECT_EQ(cluster.server().plans().latest().policy.period, 2U);
  EXPECT_THAT(cluster.log(), HasSubstr("period_auto_ends"));
}

TEST(Drift, is_not_followed_where_nothing_asks_for_it) {
  SimCluster cluster(drift_config(), data(), paced(0.3));
  cluster.start_all();
  cluster.run_to_end();
  EXPECT_EQ(cluster.server().plans().plans().size(), 1U);
  EXPECT_THAT(cluster.log(), Not(HasSubstr("drift")));
}

TEST(Drift, gives_measured_slots_anew_under_the_same_period_and_the_same_parameters) {
  Config config = drift_config();
  config.slots.admission = Admission::slots;
  config.slots.rule = SlotRule::measured;
  SimCluster steady(config, data(), paced(1.0));
  steady.start_all();
  steady.run_to_end();
  EXPECT_EQ(steady.server().plans().plans().size(), 1U);
  SimCluster slower(config, data(), paced(2.0));
  slower.start_all();
  slower.run_to_end();
  const auto plans = slower.server().plans().plans();
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[1].policy, plans[0].policy);
  EXPECT_GT(plans[1].groups.back().slot.current, plans[0].groups.back().slot.current);
  const Arena one = steady.server().center();
  const Arena other = slower.server().center();
  EXPECT_TRUE(std::ranges::equal(one.all(), other.all()));
}

}  // namespace
}  // namespace stagger
