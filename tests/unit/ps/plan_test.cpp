#include "ps/plan.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

Plan plan_of(std::size_t groups, std::uint32_t period, PhaseRule phase = PhaseRule::residue) {
  Plan plan;
  plan.policy.period = period;
  plan.policy.phase = phase;
  plan.policy.workers = 4;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t begin = groups - 1 - group;
    plan.groups.push_back(
        {.range = {.layers = {.begin = begin, .end = begin + 1}, .bytes = 100 * (group + 1)},
         .slot = {}});
  }
  set_phases(plan);
  return plan;
}

std::vector<std::uint32_t> due_in(const Plan& plan, std::uint64_t iteration) {
  std::vector<std::uint32_t> groups;
  for (const GroupId group : due_groups(plan, Iteration(iteration))) {
    groups.push_back(group.value());
  }
  return groups;
}

using Due = std::vector<std::uint32_t>;

TEST(Plan, takes_nine_groups_in_turns_of_three) {
  const Plan plan = plan_of(9, 3);
  EXPECT_EQ(due_in(plan, 1), (Due{2, 5, 8}));
  EXPECT_EQ(due_in(plan, 2), (Due{1, 4, 7}));
  EXPECT_EQ(due_in(plan, 3), (Due{0, 3, 6}));
  EXPECT_EQ(due_in(plan, 4), (Due{2, 5, 8}));
}

TEST(Plan, counts_phases_from_the_input_side_when_the_period_does_not_divide) {
  const Plan plan = plan_of(10, 3);
  EXPECT_EQ(due_in(plan, 1), (Due{0, 3, 6, 9}));
  EXPECT_EQ(due_in(plan, 2), (Due{2, 5, 8}));
  EXPECT_EQ(due_in(plan, 3), (Due{1, 4, 7}));
}

TEST(Plan, leaves_iterations_without_traffic_when_the_period_is_above_the_groups) {
  const Plan plan = plan_of(3, 5);
  EXPECT_EQ(due_in(plan, 1), (Due{2}));
  EXPECT_EQ(due_in(plan, 2), (Due{1}));
  EXPECT_EQ(due_in(plan, 3), (Due{0}));
  EXPECT_EQ(due_in(plan, 4), Due{});
  EXPECT_EQ(due_in(plan, 5), Due{});
  EXPECT_EQ(due_in(plan, 6), (Due{2}));
}

TEST(Plan, takes_every_group_in_every_iteration_with_period_one) {
  for (const PhaseRule phase : {PhaseRule::residue, PhaseRule::together}) {
    EXPECT_EQ(due_in(plan_of(3, 1, phase), 1), (Due{0, 1, 2}));
    EXPECT_EQ(due_in(plan_of(3, 1, phase), 2), (Due{0, 1, 2}));
  }
}

TEST(Plan, takes_all_groups_together_at_the_end_of_a_period) {
  const Plan plan = plan_of(3, 4, PhaseRule::together);
  EXPECT_EQ(due_in(plan, 1), Due{});
  EXPECT_EQ(due_in(plan, 3), Due{});
  EXPECT_EQ(due_in(plan, 4), (Due{0, 1, 2}));
  EXPECT_EQ(due_in(plan, 8), (Due{0, 1, 2}));
}

TEST(Plan, goes_by_the_phase_of_each_group) {
  Plan plan = plan_of(3, 4);
  plan.groups[0].phase = 0;
  plan.groups[1].phase = 2;
  plan.groups[2].phase = 2;
  EXPECT_EQ(due_in(plan, 2), (Due{1, 2}));
  EXPECT_EQ(due_in(plan, 3), Due{});
  EXPECT_EQ(due_in(plan, 4), (Due{0}));
  EXPECT_EQ(next_due(plan, GroupId(0), Iteration(5)), Iteration(8));
  EXPECT_EQ(planned_push_bytes(plan, Iteration(1), Iteration(8)), 2 * (100U + 200U + 300U));
}

TEST(Plan, tells_when_a_group_is_due_next) {
  const Plan plan = plan_of(9, 3);
  EXPECT_EQ(next_due(plan, GroupId(2), Iteration(1)), Iteration(1));
  EXPECT_EQ(next_due(plan, GroupId(2), Iteration(2)), Iteration(4));
  EXPECT_EQ(next_due(plan, GroupId(0), Iteration(1)), Iteration(3));
  EXPECT_EQ(next_due(plan_of(3, 5), GroupId(0), Iteration(4)), Iteration(8));
}

TEST(Plan, sums_a_round_in_rank_order) {
  EXPECT_EQ(
      round_order(plan_of(9, 3), {.group = GroupId(2), .iteration = Iteration(1)}),
      (std::vector<WorkerId>{WorkerId(0), WorkerId(1), WorkerId(2), WorkerId(3)}));
}

TEST(Plan, counts_the_bytes_that_a_worker_pushes) {
  const Plan plan =
      plan_of(3, 2);  // group 0 (100 bytes) and 2 (300) in odd iterations, 1 (200) in even
  EXPECT_EQ(planned_push_bytes(plan, Iteration(1), Iteration(1)), 400U);
  EXPECT_EQ(planned_push_bytes(plan, Iteration(2), Iteration(2)), 200U);
  EXPECT_EQ(planned_push_bytes(plan, Iteration(1), Iteration(5)), 3 * 400U + 2 * 200U);
  EXPECT_EQ(planned_push_bytes(plan, Iteration(2), Iteration(1)), 0U);
}

Plan version_of(Plan plan, std::uint32_t version, std::uint64_t first) {
  plan.version = PlanVersion(version);
  plan.first_iteration = Iteration(first);
  return plan;
}

TEST(PlanHistory, gives_each_iteration_the_plan_that_it_belongs_to) {
  PlanHistory history;
  EXPECT_TRUE(history.empty());
  history.add(version_of(plan_of(9, 3), 1, 1));
  history.add(version_of(plan_of(9, 4), 2, 10));
  EXPECT_EQ(history.at(Iteration(1)).version, PlanVersion(1));
  EXPECT_EQ(history.at(Iteration(9)).version, PlanVersion(1));
  EXPECT_EQ(history.at(Iteration(10)).version, PlanVersion(2));
  EXPECT_EQ(history.at(Iteration(1000)).version, PlanVersion(2));
  EXPECT_EQ(history.latest().policy.period, 4U);
  EXPECT_EQ(history.plans().size(), 2U);
}

TEST(PlanHistory, lets_a_later_plan_replace_one_that_begins_in_the_same_iteration) {
  PlanHistory history;
  history.add(version_of(plan_of(9, 3), 1, 5));
  history.add(version_of(plan_of(9, 4), 2, 5));
  EXPECT_EQ(history.at(Iteration(5)).version, PlanVersion(2));
}

TEST(PlanHistoryDeathTest, refuses_versions_and_iterations_that_go_back) {
  PlanHistory history;
  history.add(version_of(plan_of(9, 3), 2, 10));
  EXPECT_DEATH(history.add(version_of(plan_of(9, 3), 2, 20)), "version");
  EXPECT_DEATH(history.add(version_of(plan_of(9, 3), 3, 9)), "predecessor");
  EXPECT_DEATH(history.at(Iteration(9)), "no plan");
  EXPECT_DEATH(history.add(version_of(plan_of(0, 3), 3, 20)), "no groups");
  Plan late = plan_of(9, 3);
  late.groups[4].phase = 3;
  EXPECT_DEATH(history.add(version_of(late, 3, 20)), "phase");
}

TEST(PlanDeathTest, refuses_iteration_zero_and_unknown_groups) {
  EXPECT_DEATH(due(plan_of(9, 3), GroupId(0), Iteration(0)), "count from 1");
  EXPECT_DEATH(due(plan_of(9, 3), GroupId(9), Iteration(1)), "no such group");
}

}  // namespace
}  // namespace stagger
