#include "engine/planned_config.hpp"

#include <utility>

#include "ps/period_choice.hpp"
#include "ps/planner.hpp"
#include "ps/prediction.hpp"

namespace stagger {

namespace {

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

PlannedConfig plan_config(const Config& config, const std::vector<LayerProfile>& layers) {
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
  Plan plan = make_plan(planning);
  if (outlook.link) outlook.prediction = predict(plan, layers, *outlook.link);
  return {.plan = std::move(plan), .outlook = std::move(outlook), .warnings = verdict->warnings};
}

}  // namespace stagger
