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
#include "engine/virtual_cluster.hpp"
#include "engine/workload.hpp"

namespace stagger {

namespace {

/// The bytes of a shrunk model count as those of the whole one.
void add_port(
    RunFigures& figures, const SimulationResult& result, const SimulationOptions& options) {
  figures.bytes_pushed *= static_cast<double>(options.wire_bytes_per_byte);
  figures.ingress_peak_bytes = result.port.ingress_bytes_peak;
  figures.ingress_mean_bytes = result.port.ingress_bytes_mean;
  if (!options.tcp) return;
  figures.drops = static_cast<double>(result.port.drops);
  figures.retransmissions = static_cast<double>(result.retransmissions);
}

ComparedRow simulate_row(
    const CompareCommand& command, const Storage& storage, const Combination& combination) {
  ComparedRow row{.combination = combination, .why_not = {}};
  const auto config = config_of(command.common, combination);
  if (!config) {
    row.why_not = "refused: " + config.error().detail;
    return row;
  }
  const VirtualJob job = make_virtual_job(storage, *config, command.cluster);
  const SimulationResult result = simulate(job.config, *job.workload, job.options);
  row.figures = figures_of(result.totals, result.status);
  add_port(*row.figures, result, job.options);
  row.predicted_iteration_us = predicted_iteration_us(job.full, job.layers);
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
