#include "ps/server_drift.hpp"

#include <algorithm>
#include <memory>

#include "observability/check.hpp"
#include "ps/server_change.hpp"

// Plans that follow what is measured while the run goes on: another T under period_auto, other
// slots under slot rule `measured`.
namespace stagger {

namespace {

/// Between two evaluations, and from a change on: long enough for what is measured to be new.
std::uint64_t iterations_apart(std::uint64_t old_period, std::uint64_t new_period) {
  return 2 * (old_period + new_period);
}

}  // namespace

bool Server::period_follows() const {
  return drift_ && drift_->follows_period;
}

void Server::stop_following(const std::string& requester) {
  if (!period_follows()) return;
  drift_->follows_period = false;
  host_.log.info("period_auto_ends", {{"requester", requester}});
}

/// REQUIRES the first plan.
void Server::begin_drift() {
  const Plan& plan = plans_.latest();
  const bool period = options_.period_auto && !plan.policy.pushes_gradients();
  const bool slots = plan.slot_rule == SlotRule::measured && has_slots(plan.admission);
  if (!period && !slots) return;
  CHECK(link_.has_value(), "plans by a link that is not known");
  std::map<WorkerId, Duration> profiled;
  for (const auto& [worker, profile] : profiles_) {
    Duration& time = profiled[worker];
    for (const Duration layer : profile.forward)
      time += layer;
    for (const Duration layer : profile.backward)
      time += layer;
  }
  drift_ = std::make_unique<Drift>(host_.executor, std::move(profiled));
  drift_->follows_period = period;
  drift_->follows_slots = slots;
  drift_->layers = options_.layers;
  drift_->slot_layers = options_.slots.layers;
  drift_->planned = {.link = link_->cost, .compute = 1.0};
  drift_->next = Iteration(iterations_apart(plan.policy.period, plan.policy.period));
}

Task<void> Server::watch_drift() {
  for (;;) {
    const auto active = membership_.in_state(Membership::State::active);
    const bool due = status().iteration >= drift_->next && drift_->compute.fresh(active);
    if (due && !active.empty() && (drift_->follows_period || drift_->follows_slots)) {
      co_await follow_drift();
    }
    drift_->moved.reset();
    co_await drift_->moved.wait();
  }
}

/// What plans go by from now on.
void Server::plan_by(const LinkCost& link, double compute) {
  drift_->planned = {.link = link, .compute = compute};
  options_.layers = scaled_times(drift_->layers, compute);
  options_.slots.layers = scaled_times(drift_->slot_layers, compute);
  if (options_.slots.link) options_.slots.link->cost = link;
  show_link(link);
}

/// One evaluation, and the change that it asks for.
Task<void> Server::follow_drift() {
  Drift& drift = *drift_;
  const Plan& plan = plans_.latest();
  const std::uint32_t period = plan.policy.period;
  drift.next = Iteration(status().iteration.value() + iterations_apart(period, period));
  LinkCost link = drift.planned.link;
  if (link_->measured) {
    link.seconds_per_byte = drift.link.seconds_per_byte().value_or(link.seconds_per_byte);
  }
  const double compute = drift.compute.take().value_or(drift.planned.compute);
  auto change = due_change(link, compute);
  if (!change) co_return;
  plan_by(link, compute);
  const auto outcome = co_await submit(change);
  if (!outcome) co_return;
  drift.next =
      Iteration(outcome->value() + iterations_apart(period, plans_.latest().policy.period));
}

std::shared_ptr<Server::Change> Server::due_change(const LinkCost& link, double compute) {
  Drift& drift = *drift_;
  const auto layers = scaled_times(drift.layers, compute);
  SlotOptions slots = options_.slots;
  slots.layers = scaled_times(drift.slot_layers, compute);
  if (slots.link) slots.link->cost = link;
  const auto choice = drift.follows_period ? drift.tuner.evaluated(
                                                 {.policy = options_.policy,
                                                  .plan = plans_.latest(),
                                                  .layers = layers,
                                                  .slots = slots,
                                                  .link = link})
                                           : std::nullopt;
  const bool slots_due =
      drift.follows_slots && drift.gate.evaluated(
                                 link.seconds_per_byte / drift.planned.link.seconds_per_byte,
                                 compute / drift.planned.compute);
  if (!choice && !slots_due) return nullptr;
  auto change =
      std::make_shared<Change>(host_.executor, choice ? Change::Kind::period : Change::Kind::slots);
  change->period = choice ? choice->period : 0;
  change->requester = "auto";
  host_.log.info(
      "drift",
      {{"rate_bits_per_second", rate_bits_per_second(link)},
       {"compute_ratio", compute},
       {"reason", choice ? choice->reason : std::string("slots no longer fit what pushes take")}});
  return change;
}

}  // namespace stagger
