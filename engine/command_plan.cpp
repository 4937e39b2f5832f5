#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/config_conflicts.hpp"
#include "engine/job.hpp"
#include "engine/measured_profile.hpp"
#include "engine/planned_config.hpp"
#include "engine/replay_profile.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "engine/units.hpp"

namespace stagger {

namespace {

/// The config with what the flags say of the link.
Config config_of(const PlanCommand& command) {
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
  const Config config = config_of(command);
  require_link(config, command.common.config_path);
  Role role("plan", config.job.seed);
  const auto layers = command.profile_path
                          ? load_profile(role.host().storage, *command.profile_path)
                          : profile_of(role, config);
  const PlannedConfig planned = plan_config(config, layers);
  for (const std::string& warning : planned.warnings)
    fmt::print(stderr, "warning: {}\n", warning);
  fmt::print(
      "{}",
      command.common.json ? plan_json(planned.plan, layers, &planned.outlook)
                          : plan_text(planned.plan, layers, &planned.outlook));
  return ExitCode::success;
}

}  // namespace stagger
