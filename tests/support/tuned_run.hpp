#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ps/period_tuner.hpp"

namespace stagger {

/// A run of four workers whose period follows what is measured, without the run.
///
/// Eight equal layers, a group each; an iteration computes for 24 ms. `load` is the time that the
/// link takes to carry all groups of all workers once, over that.
class TunedRun {
 public:
  explicit TunedRun(std::uint32_t period) {
    for (int layer = 0; layer < 8; ++layer)
      layers_.push_back(
          {.name = "layer",
           .parameters = 250'000,
           .bytes = 1'000'000,
           .forward = 1ms,
           .backward = 2ms});
    policy_.workers = 4;
    policy_.period = period;
    plan_ = make_plan(
        {.layers = layers_,
         .policy = resolve(policy_).value().policy,
         .grouping = {.planner = GroupPlanner::layerwise},
         .admission = Admission::none});
  }

  std::uint32_t period() const { return plan_.policy.period; }

  /// One evaluation; a proposal is carried out.
  std::optional<PeriodChoice> evaluate(double load) {
    const auto choice = tuner_.evaluated(
        {.policy = policy_,
         .plan = plan_,
         .layers = layers_,
         .slots = slots_,
         .link = link_of(load)});
    if (!choice) return std::nullopt;
    policy_.period = choice->period;
    plan_ = replan(plan_, layers_, resolve(policy_).value().policy, plan_.admission, slots_);
    return choice;
  }

  bool hides(double load) const { return predict(plan_, layers_, link_of(load)).hidden; }

 private:
  static LinkCost link_of(double load) {
    return {.start = Duration{0}, .seconds_per_byte = load * 24e-3 / 32e6};
  }

  std::vector<LayerProfile> layers_;
  PolicyRequest policy_;
  SlotOptions slots_;
  Plan plan_;
  PeriodTuner tuner_;
};

}  // namespace stagger
