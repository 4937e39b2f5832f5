#include <memory>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/iteration_picture.hpp"
#include "engine/job.hpp"
#include "engine/planned_config.hpp"
#include "engine/role.hpp"
#include "engine/safetensors.hpp"
#include "engine/simulation_report.hpp"

namespace stagger {

namespace {

std::optional<double> predicted_us(const VirtualJob& job) {
  if (!job.full.sync.period) return std::nullopt;  // the run chooses T
  const PlannedConfig planned = plan_config(job.full, job.layers);
  if (!planned.outlook.prediction) return std::nullopt;
  return to_microseconds(planned.outlook.prediction->iteration);
}

void write_picture(
    Storage& storage, const SimulateCommand& command, const SimulationResult& result) {
  if (!command.svg_path) return;
  const std::string svg = picture_svg(result.timelines);
  const auto written = storage.write_atomic(*command.svg_path, std::as_bytes(std::span(svg)));
  if (!written) throw StorageError(describe(written.error()));
}

void check(const SimulateCommand& command) {
  if (command.svg_path && command.picture_of == 0) {
    throw ConfigError("--svg: which iteration? give --picture ITERATION");
  }
  if (command.evaluate_every > 0 && !command.cluster.train) {
    throw ConfigError("--evaluate-every: needs --train, as nothing is computed without it");
  }
}

}  // namespace

ExitCode run_simulation(const SimulateCommand& command) {
  check(command);
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("simulate", config.job.seed);
  VirtualJob job = make_virtual_job(role.host().storage, config, command.cluster);
  job.options.evaluation_interval = command.evaluate_every;
  job.options.timeline_of = Iteration(command.picture_of);
  if (command.picture_of > job.workload->last_iteration().value()) {
    throw ConfigError(fmt::format(
        "--picture {}: the run ends with iteration {}",
        command.picture_of,
        job.workload->last_iteration().value()));
  }
  const TimePoint began = role.host().clock.now();
  const SimulationResult result = simulate(job.config, *job.workload, job.options);
  const SimulatedRun run{
      .job = job,
      .result = result,
      .evaluation = command.cluster.train ? job.workload->evaluate(result.center) : std::nullopt,
      .predicted_iteration_us = predicted_us(job),
      .wall_seconds = to_seconds(role.host().clock.now() - began),
      .parameters_sha256 = parameters_sha256(result.center)};
  write_picture(role.host().storage, command, result);
  if (command.common.json) {
    fmt::print("{}", simulation_json(run));
    return ExitCode::success;
  }
  fmt::print("{}", simulation_text(run));
  if (command.picture_of > 0) fmt::print("\n{}", picture_text(result.timelines));
  return ExitCode::success;
}

}  // namespace stagger
