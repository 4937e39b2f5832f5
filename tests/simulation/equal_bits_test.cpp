#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"
#include "tests/support/synthetic_data.hpp"

// Parameters depend on the config and the data alone: never on links, order of arrival, chunks, or
// memory.
namespace stagger {
namespace {

struct Sync {
  std::string name;
  Strategy strategy;
  UpdateRule rule;
  std::optional<PhaseRule> phases = std::nullopt;
};

std::vector<Sync> all_syncs() {
  return {
      {.name = "interleaved_old_center",
       .strategy = Strategy::interleaved,
       .rule = UpdateRule::old_center},
      {.name = "interleaved_fresh_center",
       .strategy = Strategy::interleaved,
       .rule = UpdateRule::fresh_center},
      {.name = "interleaved_post_step",
       .strategy = Strategy::interleaved,
       .rule = UpdateRule::post_step},
      {.name = "easgd_old_center", .strategy = Strategy::easgd, .rule = UpdateRule::old_center},
      {.name = "easgd_fresh_center", .strategy = Strategy::easgd, .rule = UpdateRule::fresh_center},
      {.name = "local_sgd", .strategy = Strategy::local_sgd, .rule = UpdateRule::post_step},
      {.name = "diloco", .strategy = Strategy::diloco, .rule = UpdateRule::post_step},
      {.name = "diloco_in_phases",
       .strategy = Strategy::diloco,
       .rule = UpdateRule::post_step,
       .phases = PhaseRule::residue},
      {.name = "bsp", .strategy = Strategy::bsp, .rule = UpdateRule::old_center}};
}

Config config_of(const Sync& sync) {
  Config config = synthetic_config();
  config.sync.strategy = sync.strategy;
  config.sync.rule = sync.rule;
  config.sync.phases = sync.phases;
  if (sync.strategy == Strategy::bsp) config.sync.period = 1;
  return config;
}

const Dataset& data() {
  static const Dataset dataset = synthetic_dataset(synthetic_samples, 1);
  return dataset;
}

class EqualBits : public testing::TestWithParam<Sync> {
 protected:
  static SimulationResult run(const Config& config, const SimulationOptions& options = {}) {
    return simulate(config, data(), options);
  }

  static SimulationResult run_in_world(std::uint64_t seed) {
    SimulationOptions options;
    options.seed = seed;
    return run(config_of(GetParam()), options);
  }

  std::string reference() const { return parameters_sha256(run(config_of(GetParam())).center); }

  /// The same config and one thing changed that must not matter.
  void expect_same(
      const std::function<void(Config&, SimulationOptions&)>& change, std::string_view what) {
    Config config = config_of(GetParam());
    SimulationOptions options;
    change(config, options);
    EXPECT_EQ(parameters_sha256(run(config, options).center), reference()) << what;
  }
};

TEST_P(EqualBits, the_same_seed_twice_is_the_same_run) {
  const SimulationResult first = run(config_of(GetParam()));
  const SimulationResult second = run(config_of(GetParam()));
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.virtual_seconds, second.virtual_seconds);
  EXPECT_EQ(parameters_sha256(first.center), parameters_sha256(second.center));
}

TEST_P(EqualBits, another_world_changes_the_trace_and_no_parameter) {
  const SimulationResult one = run_in_world(1);
  for (const std::uint64_t seed : {2U, 3U}) {
    const SimulationResult other = run_in_world(seed);
    EXPECT_NE(one.trace_hash, other.trace_hash);
    EXPECT_EQ(parameters_sha256(one.center), parameters_sha256(other.center));
  }
}

TEST_P(EqualBits, links_and_processors_do_not_matter) {
  expect_same([](Config&, SimulationOptions& options) { options.compute_jitter = 0.9; }, "jitter");
  expect_same(
      [](Config&, SimulationOptions& options) {
        options.node.egress.rate_bits_per_second = 2e5;
        options.node.ingress.rate_bits_per_second = 1e6;
      },
      "slow links");
  expect_same(
      [](Config&, SimulationOptions& options) {
        options.node.egress.latency = 30ms;
        options.flops_per_second = 1e6;
      },
      "latency");
}

TEST_P(EqualBits, admission_does_not_matter) {
  for (const Admission admission :
       {Admission::none, Admission::slots, Admission::grants, Admission::slots_grants}) {
    for (const std::uint32_t concurrent : {1U, 2U}) {
      expect_same(
          [&](Config& config, SimulationOptions& options) {
            config.slots.admission = admission;
            config.slots.concurrent = concurrent;
            options.compute_jitter = 0.9;
          },
          to_string(admission));
    }
  }
}

TEST_P(EqualBits, chunks_and_memory_for_early_ones_do_not_matter) {
  for (const std::uint64_t chunk_bytes : {64U, 256U}) {
    for (const std::uint64_t early_chunks : {0U, 1U, 3U}) {
      expect_same(
          [&](Config& config, SimulationOptions& options) {
            config.wire.chunk_bytes = chunk_bytes;
            config.wire.early_bytes_max = early_chunks * chunk_bytes;
            options.compute_jitter = 0.9;
          },
          "small chunks, little memory");
    }
  }
}

TEST_P(EqualBits, another_job_seed_gives_other_parameters) {
  Config config = config_of(GetParam());
  ++config.job.seed;
  EXPECT_NE(parameters_sha256(run(config).center), reference());
}

INSTANTIATE_TEST_SUITE_P(
    AllSyncs, EqualBits, testing::ValuesIn(all_syncs()), [](const auto& tried) {
      return tried.param.name;
    });

}  // namespace
}  // namespace stagger
