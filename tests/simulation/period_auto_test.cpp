#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

namespace stagger {
namespace {

using testing::HasSubstr;
using testing::Not;

Config auto_config(double rate_bits_per_second) {
  Config config = synthetic_config();
  config.job.iterations = 12;
  config.sync.period.reset();
  config.link = {.rate_bits_per_second = rate_bits_per_second, .start_us = 0.0};
  return config;
}

Dataset data() {
  return synthetic_dataset(synthetic_samples, 1);
}

TEST(PeriodAuto, is_one_on_a_link_that_hides_everything) {
  SimCluster cluster(auto_config(1e12), data());
  cluster.start_all();
  cluster.run_to_end();
  EXPECT_EQ(cluster.server().plans().latest().policy.period, 1U);
  ASSERT_TRUE(cluster.server().period_choice());
  EXPECT_TRUE(cluster.server().period_choice()->hides);
  EXPECT_THAT(cluster.log(), HasSubstr("period_chosen"));
  EXPECT_THAT(cluster.log(), HasSubstr("T=1 is the smallest whose prediction hides"));
}

TEST(PeriodAuto, is_what_the_measured_profile_and_the_link_ask_for) {
  SimCluster cluster(auto_config(2e6), data());
  cluster.start_all();
  cluster.run_to_end();
  const Server& server = cluster.server();
  const Plan& plan = server.plans().latest();
  ASSERT_TRUE(server.period_choice());
  EXPECT_EQ(plan.policy.period, server.period_choice()->period);
  EXPECT_GT(plan.policy.period, 1U);
  const LinkCost link = make_link_cost(2e6, 0ns).value();
  EXPECT_TRUE(predict(plan, server.options().layers, link).hidden);
  EXPECT_EQ(server.status().iteration, Iteration(12));
}

TEST(PeriodAuto, gives_the_same_parameters_as_the_number_that_it_chooses) {
  SimCluster chosen(auto_config(2e6), data());
  chosen.start_all();
  chosen.run_to_end();
  Config config = auto_config(2e6);
  config.sync.period = chosen.server().plans().latest().policy.period;
  SimCluster given(config, data());
  given.start_all();
  given.run_to_end();
  EXPECT_FALSE(given.server().period_choice());
  EXPECT_THAT(given.log(), Not(HasSubstr("period_chosen")));
  const Arena one = chosen.server().center();
  const Arena other = given.server().center();
  ASSERT_EQ(one.layout().parameters().size(), other.layout().parameters().size());
  for (std::size_t i = 0; i < one.layout().parameters().size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(one.parameter(i), other.parameter(i))) << i;
  }
}

}  // namespace
}  // namespace stagger
