#include <fmt/format.h>

#include "engine/commands.hpp"
#include "engine/measured_profile.hpp"
#include "engine/replay_profile.hpp"
#include "engine/report.hpp"
#include "engine/role.hpp"
#include "ps/planner.hpp"

namespace stagger {

ExitCode show_plan(const PlanCommand& command) {
  const Config config = load_config(command.common.config_path, command.common.overrides);
  Role role("plan", config.job.seed);
  const auto layers = command.profile_path
                          ? load_profile(role.host().storage, *command.profile_path)
                          : profile_of(role, config);
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
