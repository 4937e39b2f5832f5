#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/commands.hpp"
#include "engine/evaluation.hpp"
#include "engine/job.hpp"
#include "engine/role.hpp"
#include "engine/safetensors.hpp"
#include "engine/simulation.hpp"

namespace stagger {

ExitCode run_simulation(const SimulateCommand& command) {
  constexpr std::size_t batch_max = 250;
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("simulate", config.job.seed);
  const Dataset train = load_train_data(role.host().storage, config);
  const Dataset test = load_test_data(role.host().storage, config);
  SimulationOptions options;
  options.seed = command.seed;
  for (LinkOptions* link : {&options.node.egress, &options.node.ingress}) {
    link->rate_bits_per_second = command.bandwidth_bits_per_second;
    link->latency = from_seconds(command.latency_seconds);
  }
  const SimulationResult result = simulate(config, train, options);
  auto model = build_model(config, test, batch_max);
  const Evaluation evaluation = evaluate(*model, batch_max, result.center, test);
  const nlohmann::ordered_json report{
      {"workers", config.cluster.workers},
      {"iterations", result.status.iteration.value()},
      {"virtual_seconds", result.virtual_seconds},
      {"exposed_seconds", result.totals.exposed_seconds},
      {"bytes_pushed", result.totals.bytes_pushed},
      {"bytes_pulled", result.totals.bytes_pulled},
      {"pushes_in_flight_max", result.status.pushes_in_flight_max},
      {"test_accuracy", evaluation.accuracy},
      {"test_loss", evaluation.loss},
      {"events", result.events},
      {"trace_hash", fmt::format("{:016x}", result.trace_hash)},
      {"parameters_sha256", parameters_sha256(result.center)}};
  if (command.common.json) {
    fmt::print("{}\n", report.dump(2));
    return ExitCode::success;
  }
  for (const auto& [key, value] : report.items())
    fmt::print("{:<22}{}\n", key, value.dump());
  return ExitCode::success;
}

}  // namespace stagger
