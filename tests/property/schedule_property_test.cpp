#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ps/grouping.hpp"
#include "ps/plan.hpp"
#include "ps/planner.hpp"
#include "ps/slots.hpp"

namespace stagger {
namespace {

std::uint32_t pick(std::uint32_t low, std::uint32_t high) {
  return *rc::gen::inRange<std::uint32_t>(low, high + 1);
}

/// Some layers without parameters; at least one with.
std::vector<LayerProfile> pick_layers() {
  std::vector<LayerProfile> layers(pick(1, 24));
  for (LayerProfile& layer : layers) {
    layer.name = "layer";
    layer.parameters = pick(0, 3) == 0 ? 0 : pick(1, 100'000);
    layer.bytes = layer.parameters * 4;
    layer.forward = pick(0, 5'000'000) * 1ns;
    layer.backward = pick(0, 9'000'000) * 1ns;
  }
  LayerProfile& trained = layers[pick(0, static_cast<std::uint32_t>(layers.size()) - 1)];
  if (trained.parameters == 0) trained.parameters = trained.bytes = 4;
  return layers;
}

GroupingOptions pick_grouping() {
  return {
      .planner = *rc::gen::element(
          GroupPlanner::layerwise, GroupPlanner::all, GroupPlanner::bytes, GroupPlanner::count),
      .count = pick(0, 12),
      .bytes_max = pick(1, 800'000),
      .first_bytes_max = pick(1, 200'000),
      .period = pick(1, 6)};
}

PhaseRule pick_phase_rule() {
  return *rc::gen::element(
      PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level);
}

Plan pick_plan(std::uint32_t period, PhaseRule phase = PhaseRule::residue) {
  PlanRequest request;
  request.layers = pick_layers();
  request.policy.period = period;
  request.policy.workers = pick(1, 9);
  request.policy.phase = phase;
  request.grouping = pick_grouping();
  return make_plan(request);
}

RC_GTEST_PROP(ScheduleProperty, due_sets_of_one_period_cover_every_group_exactly_once, ()) {
  const std::uint32_t period = pick(1, 40);
  const Plan plan = pick_plan(period, pick_phase_rule());
  const std::uint32_t begin = pick(1, 1000);
  std::vector<int> times(plan.groups.size(), 0);
  for (std::uint32_t offset = 0; offset < period; ++offset) {
    for (const GroupId group : due_groups(plan, Iteration(begin + offset))) {
      ++times[group.value()];
    }
  }
  RC_ASSERT(std::ranges::all_of(times, [](int count) { return count == 1; }));
}

RC_GTEST_PROP(ScheduleProperty, due_sets_of_one_iteration_are_a_period_apart, ()) {
  const std::uint32_t period = pick(1, 12);
  const Plan plan = pick_plan(period);
  const std::vector<GroupId> groups = due_groups(plan, Iteration(pick(1, 1000)));
  for (std::size_t i = 1; i < groups.size(); ++i) {
    RC_ASSERT(groups[i].value() == groups[i - 1].value() + period);
  }
}

RC_GTEST_PROP(ScheduleProperty, next_due_is_the_first_iteration_in_which_a_group_is_due, ()) {
  Plan plan = pick_plan(pick(1, 12));
  plan.policy.phase = pick_phase_rule();
  set_phases(plan);
  const GroupId group(pick(0, static_cast<std::uint32_t>(plan.groups.size()) - 1));
  Iteration expected(pick(1, 1000));
  const Iteration next = next_due(plan, group, expected);
  while (!due(plan, group, expected))
    expected = expected.next();
  RC_ASSERT(next == expected);
}

RC_GTEST_PROP(ScheduleProperty, push_bytes_are_the_bytes_of_all_groups_due, ()) {
  const Plan plan = pick_plan(pick(1, 12), pick_phase_rule());
  const std::uint64_t first = pick(1, 50);
  const std::uint64_t last = pick(1, 80);
  std::uint64_t expected = 0;
  for (std::uint64_t iteration = first; iteration <= last; ++iteration) {
    for (const GroupId group : due_groups(plan, Iteration(iteration))) {
      expected += plan.groups[group.value()].range.bytes;
    }
  }
  RC_ASSERT(planned_push_bytes(plan, Iteration(first), Iteration(last)) == expected);
}

RC_GTEST_PROP(ScheduleProperty, windows_of_one_phase_tile_without_overlap, ()) {
  const std::uint32_t period = pick(1, 12);
  const Plan plan = pick_plan(period);
  for (std::size_t group = 0; group < plan.groups.size(); ++group) {
    const SlotWindow& slot = plan.groups[group].slot;
    RC_ASSERT(slot.window >= Duration{0});
    if (group + period < plan.groups.size()) {
      RC_ASSERT(slot.current + slot.window == plan.groups[group + period].slot.current);
    }
  }
}

RC_GTEST_PROP(ScheduleProperty, slots_of_different_workers_do_not_overlap, ()) {
  const Plan plan = pick_plan(pick(1, 6));
  const std::uint32_t workers = plan.policy.workers;
  for (std::uint64_t iteration = 1; iteration <= plan.policy.period; ++iteration) {
    Duration link_free{0};
    for (const GroupId group : due_groups(plan, Iteration(iteration))) {
      const SlotWindow& slot = plan.groups[group.value()].slot;
      for (std::uint32_t position = 0; position < workers; ++position) {
        const Duration begin = slot.current + position * slot.slot;
        RC_ASSERT(begin >= link_free);
        link_free = begin + slot.slot;
      }
      RC_ASSERT(link_free <= slot.current + slot.window);
    }
  }
}

RC_GTEST_PROP(ScheduleProperty, a_slot_begins_after_its_groups_backward, ()) {
  const std::vector<LayerProfile> layers = pick_layers();
  const std::vector<GroupRange> groups = group_layers(layers, pick_grouping());
  const GroupTimeline timeline = group_timeline(layers, groups);
  const std::vector<SlotWindow> slots = paper_slots(timeline, pick(1, 9), pick(1, 9));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Duration backward{0};
    for (std::size_t i = groups[group].layers.begin; i < groups[group].layers.end; ++i) {
      backward += layers[i].backward;
    }
    RC_ASSERT(slots[group].current == timeline.start[group] + backward);
  }
}

RC_GTEST_PROP(ScheduleProperty, groups_partition_the_layers_and_none_is_without_parameters, ()) {
  const std::vector<LayerProfile> layers = pick_layers();
  std::size_t reached = layers.size();
  for (const GroupRange& group : group_layers(layers, pick_grouping())) {
    RC_ASSERT(group.layers.end == reached);
    RC_ASSERT(group.layers.begin < group.layers.end);
    std::uint64_t bytes = 0;
    std::uint64_t parameters = 0;
    for (std::size_t layer = group.layers.begin; layer < group.layers.end; ++layer) {
      bytes += layers[layer].bytes;
      parameters += layers[layer].parameters;
    }
    RC_ASSERT(group.bytes == bytes);
    RC_ASSERT(parameters > 0U);
    reached = group.layers.begin;
  }
  RC_ASSERT(reached == 0U);
}

/// The least largest group over all cuts, by trying them all.
std::uint64_t brute_force(const std::vector<std::uint64_t>& bytes, std::size_t count) {
  const std::size_t cuts = bytes.size() - 1;
  std::uint64_t best = ~std::uint64_t{0};
  for (std::size_t mask = 0; mask < (std::size_t{1} << cuts); ++mask) {
    std::size_t groups = 1;
    std::uint64_t size = bytes[0];
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < cuts; ++i) {
      largest = std::max(largest, size);
      const bool is_cut = ((mask >> i) & 1U) != 0;
      groups += is_cut ? 1U : 0U;
      size = (is_cut ? 0 : size) + bytes[i + 1];
    }
    if (groups == count) best = std::min(best, std::max(largest, size));
  }
  return best;
}

RC_GTEST_PROP(ScheduleProperty, grouping_by_count_has_the_least_largest_group, ()) {
  std::vector<std::uint64_t> bytes(pick(1, 10));
  std::vector<LayerProfile> layers;
  for (std::uint64_t& each : bytes) {
    each = 4 * std::uint64_t{pick(1, 30)};
    layers.push_back({.name = "layer", .parameters = each / 4, .bytes = each});
  }
  const std::uint32_t count = pick(1, static_cast<std::uint32_t>(bytes.size()));
  const std::vector<GroupRange> groups =
      group_layers(layers, {.planner = GroupPlanner::count, .count = count});
  RC_ASSERT(groups.size() == count);
  const auto largest = std::ranges::max(groups, {}, &GroupRange::bytes).bytes;
  RC_ASSERT(largest == brute_force(bytes, count));
}

/// A change of T: each group is due at least once in any T_old + T_new iterations, and where each
/// iteration goes by the plan that it belongs to.
RC_GTEST_PROP(ScheduleProperty, no_group_is_forgotten_around_a_change_of_period, ()) {
  const Plan first = pick_plan(pick(1, 10));
  Plan second = first;
  second.version = PlanVersion(2);
  second.policy.period = pick(1, 10);
  second.policy.phase = pick_phase_rule();
  set_phases(second);
  second.first_iteration = Iteration(pick(1, 60));
  PlanHistory history;
  history.add(first);
  history.add(second);
  const std::uint64_t span = first.policy.period + second.policy.period;
  const std::uint64_t change = second.first_iteration.value();
  for (GroupId group; group.value() < first.groups.size(); group = group.next()) {
    for (std::uint64_t begin = 1; begin <= change + span; ++begin) {
      std::uint64_t times = 0;
      for (std::uint64_t j = begin; j < begin + span; ++j) {
        times += due(history.at(Iteration(j)), group, Iteration(j)) ? 1U : 0U;
      }
      RC_ASSERT(times >= 1U);
    }
  }
}

}  // namespace
}  // namespace stagger
