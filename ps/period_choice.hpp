#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ps/planner.hpp"
#include "ps/prediction.hpp"

/// Which period a link allows. Pure.
namespace stagger {

struct PeriodChoice {
  std::uint32_t period = 1;
  bool hides = false;  ///< the prediction of its plan hides communication
  std::string reason;  ///< one line for people
};

/// The largest period that is considered.
constexpr std::uint32_t chosen_period_max = 64;

/// The smallest T from 1 to 64 whose plan's prediction hides communication; if none does, the
/// smallest whose predicted iteration time is within 5 % of the least. Each T is planned as a run
/// with that T would be: groups, phases and slots of its own. T that the stability theory refuses
/// are left out; fails with the refusal if no T is allowed. Strategy bsp: 1.
/// `planning.policy` and `planning.grouping.period` are not looked at. REQUIRES what make_plan
/// requires of the rest.
Result<PeriodChoice> choose_period(
    const PolicyRequest& policy, PlanRequest planning, const LinkCost& link);

/// The same for a run under way: the groups of its plan stay, and each T is planned as a change to
/// it would be.
Result<PeriodChoice> choose_next_period(
    const PolicyRequest& policy,
    const Plan& current,
    std::span<const LayerProfile> layers,
    const SlotOptions& slots,
    const LinkCost& link);

}  // namespace stagger
