#include "ps/period_choice.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stagger {
namespace {

struct Candidate {
  std::uint32_t period = 1;
  Prediction prediction;
};

PeriodChoice hiding(const Candidate& candidate) {
  return {
      .period = candidate.period,
      .hides = true,
      .reason = fmt::format(
          "T={} is the smallest whose prediction hides communication (link busy {:.0f} % of the "
          "time)",
          candidate.period,
          100.0 * candidate.prediction.link_utilisation)};
}

/// REQUIRES a candidate.
PeriodChoice least_exposed(const std::vector<Candidate>& candidates) {
  constexpr double tolerance = 1.05;
  const auto time = [](const Candidate& candidate) {
    return candidate.prediction.iteration;
  };
  const Duration least = time(*std::ranges::min_element(candidates, {}, time));
  const auto chosen = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
    return to_seconds(time(candidate)) <= tolerance * to_seconds(least);
  });
  return {
      .period = chosen->period,
      .hides = false,
      .reason = fmt::format(
          "no T up to {} hides communication; T={} is the smallest within 5 % of the least "
          "predicted iteration time, {:.1f} us",
          chosen_period_max,
          chosen->period,
          to_microseconds(least))};
}

/// `plan_for`: the plan of a run under this policy.
Result<PeriodChoice> choose(
    const PolicyRequest& policy,
    std::span<const LayerProfile> layers,
    const LinkCost& link,
    const std::function<Plan(const SyncPolicy&)>& plan_for) {
  if (policy.strategy == Strategy::bsp) {
    return PeriodChoice{.period = 1, .hides = false, .reason = "T=1: strategy bsp has no other"};
  }
  std::vector<Candidate> candidates;
  std::optional<Error> refusal;
  PolicyRequest request = policy;
  for (request.period = 1; request.period <= chosen_period_max; ++request.period) {
    const auto verdict = resolve(request);
    if (verdict.has_error()) {
      refusal = verdict.error();
      continue;
    }
    candidates.push_back(
        {.period = request.period, .prediction = predict(plan_for(verdict->policy), layers, link)});
    if (candidates.back().prediction.hidden) return hiding(candidates.back());
  }
  if (candidates.empty()) return refusal.value_or(Error{});
  return least_exposed(candidates);
}

}  // namespace

Result<PeriodChoice> choose_period(
    const PolicyRequest& policy, PlanRequest planning, const LinkCost& link) {
  return choose(policy, planning.layers, link, [&planning](const SyncPolicy& resolved) {
    planning.policy = resolved;
    planning.grouping.period = resolved.period;
    return make_plan(planning);
  });
}

Result<PeriodChoice> choose_next_period(
    const PolicyRequest& policy,
    const Plan& current,
    std::span<const LayerProfile> layers,
    const SlotOptions& slots,
    const LinkCost& link) {
  return choose(policy, layers, link, [&](const SyncPolicy& resolved) {
    return replan(current, layers, resolved, current.admission, slots);
  });
}

}  // namespace stagger
