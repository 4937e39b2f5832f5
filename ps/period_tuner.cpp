#include "ps/period_tuner.hpp"

namespace stagger {
namespace {

LinkCost times(const LinkCost& link, double factor) {
  return {
      .start = saturated(static_cast<double>(link.start.count()) * factor),
      .seconds_per_byte = link.seconds_per_byte * factor};
}

/// Of the plan as it would be with this T.
std::optional<Prediction> prediction_with(
    const PeriodTuner::Situation& situation, std::uint32_t period) {
  PolicyRequest request = situation.policy;
  request.period = period;
  const auto verdict = resolve(request);
  if (verdict.has_error()) return std::nullopt;
  const Plan plan = replan(
      situation.plan, situation.layers, verdict->policy, situation.plan.admission, situation.slots);
  return predict(plan, situation.layers, situation.link);
}

std::optional<PeriodChoice> choose(const PeriodTuner::Situation& situation, double factor) {
  auto choice = choose_next_period(
      situation.policy,
      situation.plan,
      situation.layers,
      situation.slots,
      times(situation.link, factor));
  if (choice.has_error()) return std::nullopt;
  return *std::move(choice);
}

}  // namespace

std::optional<PeriodChoice> PeriodTuner::wish(const Situation& situation) const {
  const std::uint32_t period = situation.plan.policy.period;
  const auto present = prediction_with(situation, period);
  if (!present) return std::nullopt;
  if (present->hidden) {
    const auto smaller = choose(situation, options_.spare);
    if (!smaller || !smaller->hides || smaller->period >= period) return std::nullopt;
  }
  auto choice = choose(situation, options_.margin);
  if (!choice || choice->period == period) return std::nullopt;
  if (present->hidden && choice->period > period) return std::nullopt;
  if (choice->hides) return choice;
  const auto other = prediction_with(situation, choice->period);
  const double enough = (1.0 - options_.gain) * to_seconds(present->iteration);
  if (!other || to_seconds(other->iteration) >= enough) return std::nullopt;
  return choice;
}

std::optional<PeriodChoice> PeriodTuner::evaluated(const Situation& situation) {
  auto wished = wish(situation);
  const bool upwards = wished && wished->period > situation.plan.policy.period;
  in_a_row_ = !wished ? 0 : upwards == upwards_ ? in_a_row_ + 1 : 1;
  upwards_ = upwards;
  if (in_a_row_ < options_.evaluations) return std::nullopt;
  in_a_row_ = 0;
  return wished;
}

}  // namespace stagger
