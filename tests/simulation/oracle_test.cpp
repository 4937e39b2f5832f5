#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"
#include "tests/support/synthetic_data.hpp"
#include "tests/support/training_oracle.hpp"

// Whole simulated runs against a plain loop over the equations: bit for bit.
namespace stagger {
namespace {

Config oracle_config() {
  Config config = synthetic_config();
  config.sync.alpha = 0.2;
  config.sync.beta = 0.8;
  config.job.iterations = 17;
  return config;
}

void expect_equal_bits(const Config& config) {
  const Dataset data = synthetic_dataset(synthetic_samples, 1);
  SimulationOptions options;
  options.compute_jitter = 0.5;
  const SimulationResult result = simulate(config, data, options);
  EXPECT_EQ(
      parameters_sha256(result.center), parameters_sha256(train_by_the_equations(config, data)));
}

std::string rule_name(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::old_center:
      return "old_center";
    case UpdateRule::fresh_center:
      return "fresh_center";
    case UpdateRule::post_step:
      return "post_step";
  }
  return "unknown";
}

class Oracle : public testing::TestWithParam<UpdateRule> {
 protected:
  static Config config() {
    Config config = oracle_config();
    config.sync.rule = GetParam();
    return config;
  }
};

TEST_P(Oracle, agrees_on_plain_sgd_for_every_period_and_cluster) {
  for (const std::uint32_t period : {1U, 2U, 3U, 5U}) {
    for (const std::uint32_t workers : {1U, 3U}) {
      Config changed = config();
      changed.sync.period = period;
      changed.cluster.workers = workers;
      SCOPED_TRACE("period " + std::to_string(period) + " workers " + std::to_string(workers));
      expect_equal_bits(changed);
    }
  }
}

TEST_P(Oracle, agrees_with_momentum_and_weight_decay) {
  Config changed = config();
  changed.optimizer.momentum = 0.6;
  changed.optimizer.weight_decay = 1e-3;
  expect_equal_bits(changed);
}

TEST_P(Oracle, agrees_when_all_groups_are_exchanged_together) {
  Config changed = config();
  changed.sync.strategy = Strategy::easgd;
  expect_equal_bits(changed);
}

TEST_P(Oracle, agrees_on_other_groups) {
  Config changed = config();
  changed.groups.planner = GroupPlanner::all;
  expect_equal_bits(changed);
  changed.groups.planner = GroupPlanner::count;
  changed.groups.count = 2;
  expect_equal_bits(changed);
}

INSTANTIATE_TEST_SUITE_P(
    AllRules,
    Oracle,
    testing::Values(UpdateRule::old_center, UpdateRule::fresh_center, UpdateRule::post_step),
    [](const auto& tried) { return rule_name(tried.param); });

TEST(OracleOfDiloco, agrees_with_and_without_outer_momentum_and_mixing) {
  for (const double outer_momentum : {0.0, 0.5, 0.9}) {
    for (const double mixing : {1.0, 0.6}) {
      Config config = oracle_config();
      config.sync.strategy = Strategy::diloco;
      config.sync.outer_momentum = outer_momentum;
      config.sync.mixing = mixing;
      config.optimizer.momentum = 0.6;
      config.optimizer.weight_decay = 1e-3;
      SCOPED_TRACE(
          "outer momentum " + std::to_string(outer_momentum) + " mixing " + std::to_string(mixing));
      expect_equal_bits(config);
    }
  }
}

TEST(OracleOfDiloco, agrees_for_every_period_and_in_phases_of_residue_classes) {
  for (const std::uint32_t period : {1U, 2U, 5U}) {
    Config config = oracle_config();
    config.sync.strategy = Strategy::diloco;
    config.sync.period = period;
    SCOPED_TRACE("period " + std::to_string(period));
    expect_equal_bits(config);
    config.sync.phases = PhaseRule::residue;
    expect_equal_bits(config);
  }
}

TEST(OracleItself, tells_the_rules_apart) {
  const Dataset data = synthetic_dataset(synthetic_samples, 1);
  Config config = oracle_config();
  const auto old_center = parameters_sha256(train_by_the_equations(config, data));
  config.sync.rule = UpdateRule::fresh_center;
  const auto fresh_center = parameters_sha256(train_by_the_equations(config, data));
  config.sync.rule = UpdateRule::post_step;
  const auto post_step = parameters_sha256(train_by_the_equations(config, data));
  EXPECT_NE(old_center, fresh_center);
  EXPECT_NE(old_center, post_step);
  EXPECT_NE(fresh_center, post_step);
  config.sync.strategy = Strategy::diloco;
  const auto diloco = parameters_sha256(train_by_the_equations(config, data));
  EXPECT_NE(diloco, post_step);
  config.sync.phases = PhaseRule::residue;
  EXPECT_NE(diloco, parameters_sha256(train_by_the_equations(config, data)));
}

}  // namespace
}  // namespace stagger
