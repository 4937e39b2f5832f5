#include "ps/phases.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

using Phases = std::vector<std::uint32_t>;
using Bytes = std::vector<std::uint64_t>;

Phases phases(PhaseRule rule, std::size_t groups, std::uint32_t period) {
  return assign_phases(rule, Bytes(groups, 100), period);
}

std::vector<std::uint64_t> loads(const Bytes& bytes, const Phases& phases, std::uint32_t period) {
  std::vector<std::uint64_t> loads(period, 0);
  for (std::size_t group = 0; group < bytes.size(); ++group)
    loads[phases[group]] += bytes[group];
  return loads;
}

TEST(Phases, by_residue_take_neighbours_in_turns) {
  EXPECT_EQ(phases(PhaseRule::residue, 9, 3), (Phases{0, 2, 1, 0, 2, 1, 0, 2, 1}));
  EXPECT_EQ(phases(PhaseRule::residue, 10, 3), (Phases{1, 0, 2, 1, 0, 2, 1, 0, 2, 1}));
  EXPECT_EQ(phases(PhaseRule::residue, 2, 5), (Phases{2, 1}));
}

TEST(Phases, contiguous_are_runs_of_neighbours_from_the_input_side) {
  EXPECT_EQ(phases(PhaseRule::contiguous, 9, 3), (Phases{0, 0, 0, 2, 2, 2, 1, 1, 1}));
  EXPECT_EQ(phases(PhaseRule::contiguous, 7, 3), (Phases{0, 0, 2, 2, 1, 1, 1}));
  EXPECT_EQ(phases(PhaseRule::contiguous, 4, 1), (Phases{0, 0, 0, 0}));
}

TEST(Phases, contiguous_spread_over_a_period_longer_than_the_groups) {
  EXPECT_EQ(phases(PhaseRule::contiguous, 3, 6), (Phases{5, 3, 1}));
}

TEST(Phases, together_are_all_at_the_end_of_a_period) {
  EXPECT_EQ(phases(PhaseRule::together, 3, 4), (Phases{0, 0, 0}));
}

TEST(Phases, by_level_balance_what_residue_does_not) {
  const Bytes bytes{90, 10, 10, 80, 10, 10};
  const auto residue = assign_phases(PhaseRule::residue, bytes, 3);
  const auto level = assign_phases(PhaseRule::level, bytes, 3);
  EXPECT_EQ(std::ranges::max(loads(bytes, residue, 3)), 170U);
  EXPECT_EQ(std::ranges::max(loads(bytes, level, 3)), 90U);
}

TEST(Phases, by_level_of_equal_groups_are_those_of_residue) {
  for (const std::uint32_t period : {1U, 2U, 3U, 4U, 7U, 20U}) {
    EXPECT_EQ(phases(PhaseRule::level, 12, period), phases(PhaseRule::residue, 12, period))
        << period;
  }
}

TEST(Phases, are_below_any_period_and_none_for_no_groups) {
  for (const PhaseRule rule :
       {PhaseRule::residue, PhaseRule::together, PhaseRule::contiguous, PhaseRule::level}) {
    for (const std::uint32_t period : {1U, 2U, 5U, 6U, 1'000'000U, 0xFFFFFFFFU}) {
      for (const std::uint32_t phase : phases(rule, 5, period))
        EXPECT_LT(phase, period);
    }
    EXPECT_EQ(phases(rule, 0, 3), Phases{});
  }
}

TEST(PhasesDeathTest, need_a_period) {
  EXPECT_DEATH(phases(PhaseRule::level, 3, 0), "period");
}

}  // namespace
}  // namespace stagger
