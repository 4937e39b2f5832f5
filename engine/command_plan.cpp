#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/compute_backend.hpp"
#include "engine/job.hpp"
#include "engine/layer_times.hpp"
#include "engine/prediction_report.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "engine/units.hpp"
#include "ps/period_choice.hpp"
#include "ps/planner.hpp"
#include "ps/prediction.hpp"

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

/// The config with what the flags say of the link.
Config plan_config(const PlanCommand& command) {
  auto overrides = command.common.overrides;
  const auto add = [&overrides](std::string_view key, std::string_view flag, Result<double> value) {
    if (value.has_error()) throw ConfigError(fmt::format("{} {}", flag, value.error().detail));
    overrides.push_back({.key = std::string(key), .value = fmt::format("{}", *value)});
  };
  if (command.bandwidth) {
    add("link.rate_bits_per_second", "--bandwidth", parse_rate(*command.bandwidth));
  }
  if (command.latency) {
    add("link.start_us", "--latency", parse_microseconds(*command.latency));
  }
  return load_config(command.common.config_path, overrides);
}

/// What is known before there is a plan: the link, and which T it allows.
Outlook link_outlook(const Config& config, const PlanRequest& planning) {
  const auto link = link_cost(config);
  if (!link) return {};
  const PolicyRequest policy = policy_request(config);
  auto smallest = choose_period(policy, planning, *link);
  if (!smallest) {  // the config's own T is above those that are looked at, and all of them refused
    smallest =
        PeriodChoice{.period = policy.period, .hides = false, .reason = smallest.error().detail};
  }
  return {.link = link, .prediction = std::nullopt, .smallest = *std::move(smallest)};
}

}  // namespace

ExitCode show_plan(const PlanCommand& command) {
  const Config config = plan_config(command);
  Role role("plan", config.job.seed);
  const auto layers = command.profile_path
                          ? read_profile(role.host().storage, *command.profile_path)
                          : measure_profile(role, config);
  PlanRequest planning{
      .layers = layers,
      .policy = {},
      .grouping = grouping_options(config),
      .admission = config.slots.admission,
      .slots = slot_options(config)};
  Outlook outlook = link_outlook(config, planning);
  PolicyRequest policy = policy_request(config);
  if (!config.sync.period && outlook.smallest) policy.period = outlook.smallest->period;
  planning.grouping.period = policy.period;
  const auto verdict = resolve(policy);
  if (!verdict) throw ConfigError(verdict.error().detail);
  planning.policy = verdict->policy;
  const Plan plan = make_plan(planning);
  if (outlook.link) outlook.prediction = predict(plan, layers, *outlook.link);
  for (const std::string& warning : verdict->warnings)
    fmt::print(stderr, "warning: {}\n", warning);
  fmt::print(
      "{}",
      command.common.json ? plan_json(plan, layers, &outlook) : plan_text(plan, layers, &outlook));
  return ExitCode::success;
}

}  // namespace stagger
