#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/config_conflicts.hpp"
#include "engine/job.hpp"
#include "engine/measured_profile.hpp"
#include "engine/prediction_report.hpp"
#include "engine/replay_profile.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "engine/units.hpp"
#include "ps/period_choice.hpp"
#include "ps/planner.hpp"
#include "ps/prediction.hpp"

namespace stagger {

namespace {

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

/// A run measures a link that nobody has described; here there is none to measure.
void require_link(const Config& config, std::string_view path) {
  const auto need = find_link_need(config);
  if (!need || config.link.rate_bits_per_second) return;
  throw ConfigError(fmt::format(
      "{}: {} goes by what the link costs, which a run measures and a plan cannot: give "
      "--bandwidth 1gbit --latency 50us, or link.rate_bits_per_second and link.start_us in the "
      "config",
      path,
      *need));
}

}  // namespace

ExitCode show_plan(const PlanCommand& command) {
  const Config config = plan_config(command);
  require_link(config, command.common.config_path);
  Role role("plan", config.job.seed);
  const auto layers = command.profile_path
                          ? load_profile(role.host().storage, *command.profile_path)
                          : profile_of(role, config);
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
