#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

namespace stagger {
namespace {

Config measured_config(Admission admission) {
  Config config = synthetic_config();
  config.slots.admission = admission;
  config.slots.rule = SlotRule::measured;
  config.link.rate_bits_per_second = 1e7;
  return config;
}

Arena center_of(const Config& config) {
  SimCluster cluster(config, synthetic_dataset(synthetic_samples, 1));
  cluster.start_all();
  cluster.run_to_end();
  EXPECT_EQ(cluster.server().status().iteration, Iteration(config.job.iterations));
  EXPECT_EQ(cluster.server().plans().latest().slot_rule, SlotRule::measured);
  return cluster.server().center();
}

TEST(MeasuredSlotsRun, has_equal_parameters_whoever_may_send_when) {
  const Arena one = center_of(measured_config(Admission::none));
  for (const Admission admission : {Admission::slots, Admission::grants, Admission::slots_grants}) {
    const Arena other = center_of(measured_config(admission));
    ASSERT_EQ(one.layout().parameters().size(), other.layout().parameters().size());
    for (std::size_t i = 0; i < one.layout().parameters().size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(one.parameter(i), other.parameter(i)))
          << to_string(admission) << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace stagger
