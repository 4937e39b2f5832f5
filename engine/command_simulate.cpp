#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/role.hpp"
#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"
#include "engine/workload.hpp"

namespace stagger {

ExitCode run_simulation(const SimulateCommand& command) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("simulate", config.job.seed);
  const auto workload = load_workload(role.host().storage, config, DataNeed::train_and_test);
  SimulationOptions options;
  options.seed = command.seed;
  for (LinkOptions* link : {&options.node.egress, &options.node.ingress}) {
    link->rate_bits_per_second = command.bandwidth_bits_per_second;
    link->latency = from_seconds(command.latency_seconds);
  }
  const SimulationResult result = simulate(config, *workload, options);
  const auto evaluation = workload->evaluate(result.center);
  using Json = nlohmann::ordered_json;
  const Json report{
      {"workers", config.cluster.workers},
      {"iterations", result.status.iteration.value()},
      {"virtual_seconds", result.virtual_seconds},
      {"exposed_seconds", result.totals.exposed_seconds},
      {"bytes_pushed", result.totals.bytes_pushed},
      {"bytes_pulled", result.totals.bytes_pulled},
      {"pushes_in_flight_max", result.status.pushes_in_flight_max},
      {"test_accuracy", evaluation ? Json(evaluation->accuracy) : Json()},
      {"test_loss", evaluation ? Json(evaluation->loss) : Json()},
      {"events", result.events},
      {"trace_hash", fmt::format("{:016x}", result.trace_hash)},
      {"parameters_sha256", parameters_sha256(result.center)}};
  if (command.common.json) {
    fmt::print("{}\n", report.dump(2));
    return ExitCode::success;
  }
  for (const auto& [key, value] : report.items()) {
    if (!value.is_null()) fmt::print("{:<22}{}\n", key, value.dump());
  }
  return ExitCode::success;
}

}  // namespace stagger
