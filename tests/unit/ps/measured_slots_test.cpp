#include "ps/measured_slots.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "ps/planner.hpp"

namespace stagger {
namespace {

/// 1000 bytes take 1 ms.
constexpr LinkCost example_link{.start = 0ms, .seconds_per_byte = 1e-6};

/// Layers in forward order, each 1 ms forward and 2 ms backward.
std::vector<LayerProfile> layers_of(const std::vector<std::uint64_t>& bytes) {
  std::vector<LayerProfile> layers;
  for (const std::uint64_t each : bytes)
    layers.push_back(
        {.name = "layer", .parameters = each / 4, .bytes = each, .forward = 1ms, .backward = 2ms});
  return layers;
}

Plan plan_for(
    const std::vector<LayerProfile>& layers, UpdateRule rule, double guard, std::uint32_t period) {
  return make_plan(
      {.layers = layers,
       .policy = {.rule = rule, .period = period, .workers = 2},
       .grouping = {.planner = GroupPlanner::layerwise},
       .slots = {
           .rule = SlotRule::measured,
           .link = MeasuredLink{.cost = example_link, .guard = guard}}});
}

TEST(MeasuredSlots, are_as_long_as_a_push_and_its_guard) {
  const Plan plan = plan_for(layers_of({500, 500, 500}), UpdateRule::old_center, 0.5, 3);
  ASSERT_EQ(plan.groups.size(), 3U);
  EXPECT_EQ(
      plan.groups[0].slot,
      (SlotWindow{.current = 2ms, .window = 1500us, .slot = 750us, .delay = 0ms}));
  EXPECT_EQ(plan.groups[2].slot.current, 6ms);
}

TEST(MeasuredSlots, follow_each_other_on_a_link_that_is_slower_than_backward) {
  const Plan plan = plan_for(layers_of({2000, 2000, 2000}), UpdateRule::old_center, 0.0, 1);
  // Ready at 2, 4 and 6 ms, each takes 4.
  EXPECT_EQ(plan.groups[0].slot.current, 2ms);
  EXPECT_EQ(plan.groups[1].slot.current, 6ms);
  EXPECT_EQ(plan.groups[1].slot.delay, 2ms);
  EXPECT_EQ(plan.groups[2].slot.current, 10ms);
  EXPECT_EQ(plan.groups[2].slot.delay, 4ms);
}

TEST(MeasuredSlots, go_to_the_earliest_deadline_where_the_next_forward_waits) {
  const Plan plan = plan_for(layers_of({2000, 2000, 4000}), UpdateRule::fresh_center, 0.0, 1);
  // Group 0 holds the link from 2 to 10 ms. Then both others are ready, and the next forward needs
  // group 2 first.
  EXPECT_EQ(plan.groups[0].slot.current, 2ms);
  EXPECT_EQ(plan.groups[2].slot.current, 10ms);
  EXPECT_EQ(plan.groups[1].slot.current, 14ms);
}

TEST(MeasuredSlots, of_different_iterations_do_not_wait_for_each_other) {
  const Plan plan = plan_for(layers_of({2000, 2000, 2000}), UpdateRule::old_center, 0.0, 3);
  for (const PlannedGroup& group : plan.groups)
    EXPECT_EQ(group.slot.delay, 0ms);
}

TEST(MeasuredSlots, stay_within_the_times_of_a_plan_on_the_slowest_link) {
  const auto layers = layers_of({std::uint64_t{1} << 60, std::uint64_t{1} << 60});
  Plan plan = plan_for(layers, UpdateRule::old_center, 0.0, 1);
  const std::vector<SlotWindow> slots =
      measured_slots(plan, layers, {.cost = {.start = 0ns, .seconds_per_byte = 8.0}, .guard = 10});
  for (const SlotWindow& slot : slots) {
    EXPECT_LE(slot.slot, slot.window / 2);
    EXPECT_LE(slot.current, 86400s);
    EXPECT_LE(slot.delay, 86400s);
  }
}

TEST(MeasuredSlots, rotate_the_positions_so_that_nobody_is_always_last) {
  Plan plan = plan_for(layers_of({400, 400}), UpdateRule::old_center, 0.0, 2);
  plan.policy.workers = 3;
  const auto position = [&plan](std::uint32_t group, std::uint64_t iteration, std::uint32_t rank) {
    return slot_position(
        plan, {.group = GroupId(group), .iteration = Iteration(iteration)}, WorkerId(rank));
  };
  EXPECT_EQ(position(0, 1, 0), 0U);
  EXPECT_EQ(position(0, 2, 0), 1U);
  EXPECT_EQ(position(1, 2, 0), 2U);
  EXPECT_EQ(position(1, 2, 1), 0U);
  EXPECT_EQ(position(0, 6, 0), 0U);
  EXPECT_EQ(
      round_order(plan, {.group = GroupId(1), .iteration = Iteration(2)}),
      (std::vector{WorkerId(1), WorkerId(2), WorkerId(0)}));
  plan.slot_rule = SlotRule::paper;
  EXPECT_EQ(position(1, 2, 1), 1U);
}

}  // namespace
}  // namespace stagger
