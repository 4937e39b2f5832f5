#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "engine/evaluation.hpp"
#include "engine/job.hpp"
#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"
#include "tests/support/sim_cluster.hpp"
#include "tests/support/synthetic_data.hpp"

namespace stagger {
namespace {

const Dataset& data() {
  static const Dataset dataset = synthetic_dataset(synthetic_samples, 1);
  return dataset;
}

double relative_difference(const Arena& one, const Arena& other) {
  double largest = 0.0;
  double scale = 0.0;
  for (std::size_t i = 0; i < one.layout().parameters().size(); ++i) {
    const auto left = one.parameter(i);
    const auto right = other.parameter(i);
    for (std::size_t at = 0; at < left.size(); ++at) {
      largest = std::max(
          largest, std::abs(static_cast<double>(left[at]) - static_cast<double>(right[at])));
      scale = std::max(scale, std::abs(static_cast<double>(left[at])));
    }
  }
  return largest / scale;
}

Evaluation evaluation_of(const Config& config, const Arena& center) {
  constexpr std::size_t batch_max = 64;
  const auto model = build_model(config, data(), batch_max);
  return evaluate(*model, batch_max, center, data());
}

/// Rounds by the due rule alone: group g of n in iteration j iff (n - g) mod T == j mod T, and the
/// final one.
std::uint64_t expected_rounds(std::uint64_t groups, std::uint64_t period, std::uint64_t last) {
  std::uint64_t rounds = groups;
  for (std::uint64_t j = 1; j <= last; ++j) {
    for (std::uint64_t g = 0; g < groups; ++g) {
      if ((groups - g) % period == j % period) ++rounds;
    }
  }
  return rounds;
}

TEST(Runs, close_every_due_round_and_the_final_ones_for_any_period_and_cluster) {
  for (const std::uint32_t workers : {1U, 2U, 5U}) {
    for (const std::uint32_t period : {1U, 2U, 3U, 7U}) {
      Config config = synthetic_config();
      config.cluster.workers = workers;
      config.sync.period = period;
      config.job.iterations = 10;
      const SimulationResult result = simulate(config, data(), {});
      EXPECT_EQ(result.status.rounds_closed, expected_rounds(3, period, 10))
          << workers << " workers, period " << period;
      EXPECT_EQ(result.status.iteration, Iteration(10));
      EXPECT_EQ(result.status.samples, std::uint64_t{10} * workers * config.data.batch);
      for (const WorkerStatus& worker : result.status.workers) {
        EXPECT_EQ(worker.member.state, Membership::State::left);
      }
    }
  }
}

TEST(Runs, learn_the_task_with_every_strategy_and_rule) {
  struct Case {
    Strategy strategy;
    UpdateRule rule;
  };

  for (const Case& sync :
       {Case{.strategy = Strategy::interleaved, .rule = UpdateRule::old_center},
        Case{.strategy = Strategy::interleaved, .rule = UpdateRule::fresh_center},
        Case{.strategy = Strategy::interleaved, .rule = UpdateRule::post_step},
        Case{.strategy = Strategy::easgd, .rule = UpdateRule::old_center},
        Case{.strategy = Strategy::diloco, .rule = UpdateRule::post_step},
        Case{.strategy = Strategy::local_sgd, .rule = UpdateRule::post_step},
        Case{.strategy = Strategy::bsp, .rule = UpdateRule::old_center}}) {
    Config config = synthetic_config();
    config.sync.strategy = sync.strategy;
    config.sync.rule = sync.rule;
    if (sync.strategy == Strategy::bsp) config.sync.period = 1;
    config.optimizer.lr = 0.1;
    config.job.iterations = 250;
    const SimulationResult result = simulate(config, data(), {});
    const Evaluation evaluation = evaluation_of(config, result.center);
    EXPECT_GT(evaluation.accuracy, 0.85) << to_string(sync.strategy) << " " << to_string(sync.rule);
  }
}

TEST(Runs, push_the_same_bytes_as_the_plan_says_and_a_period_of_three_a_third) {
  std::uint64_t parameters = 0;
  const auto model = build_model(synthetic_config(), data(), 1);
  for (const auto& parameter : model->parameters()) {
    parameters += parameter.size();
  }
  for (const std::uint32_t period : {1U, 3U}) {
    Config config = synthetic_config();
    config.sync.period = period;
    const SimulationResult result = simulate(config, data(), {});
    const std::uint64_t exchanges = config.job.iterations / period + 1;
    EXPECT_EQ(result.totals.bytes_pushed, parameters * sizeof(float) * 3 * exchanges);
    EXPECT_EQ(result.totals.bytes_pulled, result.totals.bytes_pushed);
  }
}

TEST(Runs, post_step_with_alpha_and_beta_one_is_local_sgd) {
  Config local = synthetic_config();
  local.sync.strategy = Strategy::local_sgd;
  Config elastic = synthetic_config();
  elastic.sync.strategy = Strategy::easgd;
  elastic.sync.rule = UpdateRule::post_step;
  elastic.sync.alpha = 1.0;
  elastic.sync.beta = 1.0;
  EXPECT_EQ(
      parameters_sha256(simulate(local, data(), {}).center),
      parameters_sha256(simulate(elastic, data(), {}).center));
}

TEST(Runs, diloco_without_outer_momentum_at_outer_lr_one_is_local_sgd) {
  Config local = synthetic_config();
  local.sync.strategy = Strategy::local_sgd;
  local.optimizer.momentum = 0.5;
  Config diloco = local;
  diloco.sync.strategy = Strategy::diloco;
  diloco.sync.outer_lr = 1.0;
  diloco.sync.outer_momentum = 0.0;
  const auto center_of = [](const Config& config) {
    return parameters_sha256(simulate(config, data(), {}).center);
  };
  EXPECT_EQ(center_of(local), center_of(diloco));
  diloco.sync.outer_momentum = 0.1;
  EXPECT_NE(center_of(local), center_of(diloco));
}

/// bsp over K workers with batch B, and one worker with batch K*B.
std::pair<SimulationResult, SimulationResult> many_and_one(std::uint64_t iterations) {
  Config many = synthetic_config();
  many.sync.strategy = Strategy::bsp;
  many.sync.period = 1;
  many.optimizer.momentum = 0.5;
  many.optimizer.weight_decay = 1e-3;
  many.job.iterations = iterations;
  many.cluster.workers = 4;
  Config one = many;
  one.cluster.workers = 1;
  one.data.batch = 4 * many.data.batch;
  return {simulate(many, data(), {}), simulate(one, data(), {})};
}

TEST(Runs, bsp_takes_the_step_of_one_worker_with_the_whole_batch) {
  const auto [many, one] = many_and_one(1);
  EXPECT_LT(relative_difference(many.center, one.center), 1e-6);
}

TEST(Runs, bsp_stays_with_one_worker_for_two_hundred_steps) {
  const auto [many, one] = many_and_one(200);
  const double many_loss = evaluation_of(synthetic_config(), many.center).loss;
  const double one_loss = evaluation_of(synthetic_config(), one.center).loss;
  EXPECT_NEAR(many_loss, one_loss, 1e-2 * one_loss);
}

/// One worker is slow, and the PS keeps so few early chunks that it stops reading from the others.
SimCluster::Options held_up_by_rank_0(Config& config, double slowness) {
  config.wire.chunk_bytes = 64;
  config.wire.early_bytes_max = 64;
  SimCluster::Options options;
  options.window_bytes = 512;
  options.workers.resize(config.cluster.workers);
  options.workers[0].compute_scale = slowness;
  return options;
}

TEST(Runs, lose_nobody_to_a_worker_whose_iteration_takes_longer_than_any_limit_of_silence) {
  Config config = synthetic_config();
  config.sync.period = 1;
  const auto options = held_up_by_rank_0(config, 5000.0);
  SimCluster cluster(config, synthetic_dataset(synthetic_samples, 1), options);
  cluster.start_all();
  cluster.run_to_end();
  const double seconds = to_seconds(cluster.world().clock().now().time_since_epoch());
  EXPECT_GT(seconds, 2 * to_seconds(config.timeouts.worker) * 12);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(cluster.state(rank), Membership::State::left);
  EXPECT_EQ(cluster.server().status().iteration, Iteration(12));
}

/// A worker of which the PS reads nothing cannot use a turn: each cost half a second, for a while
/// the only thing that happened.
TEST(Runs, waste_no_turn_on_a_worker_that_cannot_send) {
  for (const Admission admission : {Admission::grants, Admission::slots_grants}) {
    Config config = synthetic_config();
    config.cluster.workers = 8;
    config.data.batch = 8;
    config.slots.admission = admission;
    const auto options = held_up_by_rank_0(config, 500.0);
    SimCluster cluster(config, synthetic_dataset(synthetic_samples, 1), options);
    cluster.start_all();
    cluster.run_to_end();
    EXPECT_EQ(cluster.metrics().turns_lost_total.value(), 0.0) << to_string(admission);
  }
}

TEST(Runs, go_on_with_thirty_two_workers) {
  Config config = synthetic_config();
  config.cluster.workers = 32;
  const SimulationResult result = simulate(config, data(), {});
  EXPECT_EQ(result.status.rounds_closed, expected_rounds(3, 3, 12));
  EXPECT_GE(result.status.pushes_in_flight_max, 1U);
  EXPECT_EQ(result.status.workers.size(), 32U);
  for (const float value : result.center.all())
    ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace stagger
