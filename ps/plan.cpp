#include "ps/plan.hpp"

#include <algorithm>
#include <utility>

#include "observability/check.hpp"
#include "ps/phases.hpp"

namespace stagger {
namespace {

std::uint64_t phase_of(const Plan& plan, GroupId group) {
  CHECK(plan.policy.period >= 1, "plan without a period", plan.version);
  CHECK(group.value() < plan.groups.size(), "no such group", group, plan.groups.size());
  return plan.groups[group.value()].phase;
}

}  // namespace

void set_phases(Plan& plan) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(plan.groups.size());
  for (const PlannedGroup& group : plan.groups)
    bytes.push_back(group.range.bytes);
  const std::vector<std::uint32_t> phases =
      assign_phases(plan.policy.phase, bytes, plan.policy.period);
  for (std::size_t group = 0; group < phases.size(); ++group)
    plan.groups[group].phase = phases[group];
}

bool due(const Plan& plan, GroupId group, Iteration iteration) {
  CHECK(iteration.value() >= 1, "iterations count from 1");
  return iteration.value() % plan.policy.period == phase_of(plan, group);
}

std::vector<GroupId> due_groups(const Plan& plan, Iteration iteration) {
  std::vector<GroupId> groups;
  for (GroupId group; group.value() < plan.groups.size(); group = group.next()) {
    if (due(plan, group, iteration)) groups.push_back(group);
  }
  return groups;
}

Iteration next_due(const Plan& plan, GroupId group, Iteration from) {
  CHECK(from.value() >= 1, "iterations count from 1");
  const std::uint64_t period = plan.policy.period;
  const std::uint64_t wait = (phase_of(plan, group) + period - from.value() % period) % period;
  return Iteration(from.value() + wait);
}

std::uint32_t slot_position(const Plan& plan, RoundId round, WorkerId worker) {
  const std::uint32_t workers = plan.policy.workers;
  CHECK(round.group.value() < plan.groups.size(), "no such group", round.group);
  CHECK_LT(worker.value(), workers);
  if (plan.slot_rule == SlotRule::paper) return worker.value();
  const std::uint64_t turns = round.iteration.value() / plan.policy.period % workers;
  return static_cast<std::uint32_t>((worker.value() + turns + round.group.value()) % workers);
}

std::vector<WorkerId> round_order(const Plan& plan, RoundId round) {
  std::vector<WorkerId> order(plan.policy.workers);
  for (WorkerId worker; worker.value() < plan.policy.workers; worker = worker.next())
    order[slot_position(plan, round, worker)] = worker;
  return order;
}

std::uint64_t planned_push_bytes(const Plan& plan, Iteration first, Iteration last) {
  std::uint64_t bytes = 0;
  for (GroupId group; group.value() < plan.groups.size(); group = group.next()) {
    const Iteration due_first = next_due(plan, group, first);
    if (due_first > last) continue;
    const std::uint64_t times = (last.value() - due_first.value()) / plan.policy.period + 1;
    bytes += times * plan.groups[group.value()].range.bytes;
  }
  return bytes;
}

void PlanHistory::add(Plan plan) {
  CHECK_LE(1U, plan.policy.period);
  CHECK(!plan.groups.empty(), "no groups in plan", plan.version);
  CHECK(plan.first_iteration.value() >= 1, "iterations count from 1");
  for (const PlannedGroup& group : plan.groups)
    CHECK_LT(group.phase, plan.policy.period);
  if (!plans_.empty()) {
    CHECK(latest().version < plan.version, latest().version, plan.version);
    CHECK(
        latest().first_iteration <= plan.first_iteration,
        "plan",
        plan.version,
        "begins at",
        plan.first_iteration,
        "before its predecessor's",
        latest().first_iteration);
  }
  plans_.push_back(std::move(plan));
}

const Plan& PlanHistory::at(Iteration iteration) const {
  const auto plan = std::find_if(plans_.rbegin(), plans_.rend(), [&](const Plan& candidate) {
    return candidate.first_iteration <= iteration;
  });
  CHECK(plan != plans_.rend(), "no plan for iteration", iteration, "among", plans_.size());
  return *plan;
}

}  // namespace stagger
