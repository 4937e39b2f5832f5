#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/compute_backend.hpp"
#include "engine/job.hpp"
#include "engine/layer_times.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "ps/planner.hpp"

namespace stagger {

namespace {

std::vector<LayerProfile> read_profile(const Storage& storage, const std::string& path) {
  const auto bytes = storage.read(path);
  if (!bytes) throw DataError(describe(bytes.error()));
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  auto layers = parse_profile_csv(text, path);
  if (!layers) throw DataError(layers.error().detail);
  return std::move(*layers);
}

/// Measures the config's model on this machine, one worker alone.
std::vector<LayerProfile> measure_profile(Role& role, const Config& config) {
  const Dataset train = load_train_data(role.host().storage, config);
  auto model = build_model(config, train, config.data.batch);
  auto layers = layer_sizes(*model);
  BatchOrder order = batch_order(config, train);
  ComputeBackend backend(std::move(model), train, std::move(order), ComputeBackend::Options{});
  LayerTimes times(role.host(), backend);
  role.run(times.measure(config.slots.profile_iterations, WorkerId(0)), [] {});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].forward = times.profile().forward[i];
    layers[i].backward = times.profile().backward[i];
  }
  return layers;
}

}  // namespace

ExitCode show_plan(const PlanCommand& command) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("plan", config.job.seed);
  const auto layers = command.profile_path
                          ? read_profile(role.host().storage, *command.profile_path)
                          : measure_profile(role, config);
  const auto verdict = resolve(policy_request(config));
  if (!verdict) throw ConfigError(verdict.error().detail);
  const Plan plan = make_plan(
      {.layers = layers,
       .policy = verdict->policy,
       .grouping = grouping_options(config),
       .admission = config.slots.admission});
  for (const std::string& warning : verdict->warnings)
    fmt::print(stderr, "warning: {}\n", warning);
  fmt::print("{}", command.common.json ? plan_json(plan, layers) : plan_text(plan, layers));
  return ExitCode::success;
}

}  // namespace stagger
