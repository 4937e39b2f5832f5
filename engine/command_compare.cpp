#include <span>
#include <utility>

#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/comparison.hpp"
#include "engine/job.hpp"
#include "engine/measured_profile.hpp"
#include "engine/measured_runs.hpp"
#include "engine/role.hpp"
#include "engine/run_files.hpp"
#include "engine/simulation.hpp"
#include "engine/workload.hpp"

namespace stagger {

namespace {

/// Each layer as long as the simulated machine computes it.
std::vector<LayerProfile> nominal_layers(const Workload& workload, double flops_per_second) {
  const auto backend = workload.make_backend({.flops_per_second = flops_per_second});
  auto layers = layer_sizes(workload.architecture());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerRange layer{.begin = i, .end = i + 1};
    layers[i].forward = backend->forward_time(layer);
    layers[i].backward = backend->backward_time(layer);
  }
  return layers;
}

/// What `simulate` is told, and for predictions the same in the words of a config.
SimulationOptions simulation_options(const CompareCommand& command) {
  SimulationOptions options;
  options.seed = command.seed;
  for (LinkOptions* link : {&options.node.egress, &options.node.ingress}) {
    link->rate_bits_per_second = command.bandwidth_bits_per_second;
    link->latency = from_seconds(command.latency_seconds);
  }
  return options;
}

Config with_link(Config config, const CompareCommand& command) {
  constexpr double links_of_a_push = 2.0;
  if (config.link.rate_bits_per_second) return config;
  config.link.rate_bits_per_second = command.bandwidth_bits_per_second;
  config.link.start_us = links_of_a_push * command.latency_seconds * 1e6;
  return config;
}

ComparedRow simulate_row(
    const CompareCommand& command, const Storage& storage, const Combination& combination) {
  ComparedRow row{.combination = combination, .why_not = {}};
  const auto config = config_of(command.common, combination);
  if (!config) {
    row.why_not = "refused: " + config.error().detail;
    return row;
  }
  const SimulationOptions options = simulation_options(command);
  const auto workload = load_workload(storage, *config, DataNeed::train);
  const SimulationResult result = simulate(*config, *workload, options);
  row.figures = figures_of(result.totals, result.status);
  row.predicted_iteration_us = predicted_iteration_us(
      with_link(*config, command), nominal_layers(*workload, options.flops_per_second));
  return row;
}

std::vector<Combination> combinations_of(const CompareCommand& command, const Config& config) {
  constexpr std::uint32_t period_default = 3;
  const std::string periods =
      command.periods.value_or(std::to_string(config.sync.period.value_or(period_default)));
  return combinations(command.strategies, periods, command.admissions);
}

void print_table(const CommonOptions& options, std::span<const ComparedRow> rows) {
  fmt::print("{}", options.json ? comparison_json(rows) : comparison_text(rows));
}

ExitCode compare_simulated(
    const CompareCommand& command, const Config& config, std::span<const Combination> all) {
  Role role("compare", config.job.seed);
  std::vector<ComparedRow> rows;
  for (const Combination& combination : all)
    rows.push_back(simulate_row(command, role.host().storage, combination));
  print_table(command.common, rows);
  return ExitCode::success;
}

std::vector<LayerProfile> measured_layers(const Config& config) {
  if (!config.link.rate_bits_per_second) return {};
  Role role("profile", config.job.seed);
  return profile_of(role, config);
}

ExitCode compare_measured(
    const CompareCommand& command,
    const Config& config,
    std::span<const Combination> all,
    const std::string& program) {
  auto layers = measured_layers(config);
  Role role("compare", config.job.seed);
  // A mistake in the data shows here, once, before anything is written.
  static_cast<void>(load_workload(role.host().storage, config, DataNeed::train_and_test));
  const std::string directory = run_directory(config) + "-compare";
  MeasuredRuns runs(
      role.real(),
      {.program = program, .common = command.common, .layers = std::move(layers)},
      RunFiles(role.host().storage, directory));
  role.run(runs.run(all), [&runs] { runs.stop(); });
  print_table(command.common, runs.rows());
  if (!command.common.json) fmt::print("runs and logs in {}/\n", directory);
  return runs.failed() ? ExitCode::failure : ExitCode::success;
}

}  // namespace

ExitCode compare_runs(const CompareCommand& command, const std::string& program) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  const auto all = combinations_of(command, config);
  return command.simulated ? compare_simulated(command, config, all)
                           : compare_measured(command, config, all, program);
}

}  // namespace stagger
