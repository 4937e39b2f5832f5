#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"
#include "engine/workload.hpp"
#include "net/sim/storage.hpp"
#include "tests/support/synthetic_data.hpp"

// A profile runs under every strategy and admission, whatever it looks like.
namespace stagger {
namespace {

Config replay_config(const std::string& profile) {
  Config config = synthetic_config();
  config.backend.kind = BackendKind::replay;
  config.backend.profile = profile;
  config.groups.planner = GroupPlanner::count;
  config.job.iterations = 7;
  return config;
}

class Replays : public testing::Test {
 protected:
  SimulationResult run(const Config& config) {
    return simulate(config, *load_workload(storage_, config, DataNeed::train_and_test), {});
  }

  std::string hash(const Config& config) { return parameters_sha256(run(config).center); }

  /// The name of a profile of so many equal layers.
  std::string layers(std::size_t count, const std::string& times) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += "layer" + std::to_string(i) + ",50,200," + times + "\n";
    const bool written =
        storage_.write_atomic("made.csv", std::as_bytes(std::span(text))).has_value();
    EXPECT_TRUE(written);
    return "made.csv";
  }

  SimStorage storage_;
};

TEST_F(Replays, have_the_same_parameters_with_every_admission) {
  for (const Strategy strategy :
       {Strategy::interleaved, Strategy::easgd, Strategy::local_sgd, Strategy::bsp}) {
    Config config = replay_config("resnet50");
    config.backend.bytes_scale = 0.001;
    config.sync.strategy = strategy;
    if (strategy == Strategy::bsp) config.sync.period = 1;
    if (strategy == Strategy::local_sgd) config.sync.rule = UpdateRule::post_step;
    config.slots.admission = Admission::none;
    const std::string reference = hash(config);
    for (const Admission admission :
         {Admission::slots, Admission::grants, Admission::slots_grants}) {
      config.slots.admission = admission;
      config.backend.jitter = 0.3;
      EXPECT_EQ(hash(config), reference) << to_string(strategy) << " " << to_string(admission);
    }
    config.job.seed = 8;
    EXPECT_NE(hash(config), reference) << to_string(strategy);
  }
}

TEST_F(Replays, take_the_profiles_time_on_the_virtual_clock) {
  Config config = replay_config(layers(4, "1000,2000"));
  const double once = run(config).virtual_seconds;
  EXPECT_GT(once, 7 * 4 * 0.003);
  config.backend.time_scale = 10.0;
  EXPECT_GT(run(config).virtual_seconds, 9 * once);
}

TEST_F(Replays, run_with_one_layer_and_with_two_thousand) {
  for (const std::size_t count : {1U, 2000U}) {
    Config config = replay_config(layers(count, "10,20"));
    for (const GroupPlanner planner : {GroupPlanner::count, GroupPlanner::layerwise}) {
      config.groups.planner = planner;
      config.job.iterations = 3;
      EXPECT_EQ(run(config).status.iteration, Iteration(3)) << count << to_string(planner);
    }
  }
}

TEST_F(Replays, run_when_layers_take_no_time_at_all) {
  Config config = replay_config(layers(5, "0,0"));
  config.slots.admission = Admission::none;
  const std::string reference = hash(config);
  for (const Admission admission : {Admission::slots, Admission::grants, Admission::slots_grants}) {
    config.slots.admission = admission;
    EXPECT_EQ(hash(config), reference) << to_string(admission);
  }
}

TEST_F(Replays, have_nothing_to_evaluate) {
  const Config config = replay_config("vgg16");
  const auto workload = load_workload(storage_, config, DataNeed::train_and_test);
  EXPECT_FALSE(workload->evaluate(Arena()).has_value());
  EXPECT_EQ(workload->last_iteration(), Iteration(7));
}

}  // namespace
}  // namespace stagger
