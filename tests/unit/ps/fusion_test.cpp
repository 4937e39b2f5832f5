#include "ps/fusion.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// Backward times in ms, and bytes.
std::vector<FusionUnit> units_of(
    const std::vector<int>& backward, const std::vector<std::uint64_t>& bytes) {
  std::vector<FusionUnit> units;
  Duration ready{0};
  for (std::size_t unit = 0; unit < bytes.size(); ++unit) {
    ready += backward[unit] * 1ms;
    units.push_back({.ready = ready, .bytes = bytes[unit]});
  }
  return units;
}

/// a = 2, b = 0.5, in ms.
constexpr LinkCost example_link{.start = 2ms, .seconds_per_byte = 0.5e-3};

const std::vector<FusionUnit>& calm() {
  static const std::vector<FusionUnit> units = units_of({2, 1, 1, 4, 2}, {4, 1, 1, 6, 2});
  return units;
}

const std::vector<FusionUnit>& early_giant() {
  static const std::vector<FusionUnit> units = units_of({3, 1, 1, 1, 4}, {8, 1, 1, 2, 4});
  return units;
}

Cuts layerwise(std::size_t units) {
  Cuts cuts(units);
  std::iota(cuts.begin(), cuts.end(), std::size_t{1});
  return cuts;
}

double end_ms(const std::vector<FusionUnit>& units, const Cuts& cuts, std::uint32_t period = 1) {
  return score_cuts(units, cuts, example_link, {.period = period}).end_ns / 1e6;
}

TEST(Fusion, ends_late_without_merging_and_with_one_group) {
  EXPECT_EQ(end_ms(calm(), layerwise(5)), 19.0);
  EXPECT_EQ(end_ms(calm(), {5}), 19.0);
}

TEST(Fusion, greedy_and_optimal_agree_on_the_calm_example) {
  EXPECT_EQ(merge_greedily(calm(), example_link), (Cuts{3, 5}));
  EXPECT_EQ(merge_optimally(calm(), example_link), (Cuts{3, 5}));
  EXPECT_EQ(end_ms(calm(), {3, 5}), 16.0);
}

TEST(Fusion, greedy_holds_back_a_large_early_group_and_optimal_does_not) {
  EXPECT_EQ(merge_greedily(early_giant(), example_link), (Cuts{4, 5}));
  EXPECT_EQ(end_ms(early_giant(), {4, 5}), 18.0);
  EXPECT_EQ(merge_optimally(early_giant(), example_link), (Cuts{1, 5}));
  EXPECT_EQ(end_ms(early_giant(), {1, 5}), 16.0);
}

TEST(Fusion, has_nothing_to_merge_in_one_unit) {
  const auto one = units_of({3}, {8});
  EXPECT_EQ(merge_greedily(one, example_link), Cuts{1});
  EXPECT_EQ(merge_optimally(one, example_link), Cuts{1});
  EXPECT_EQ(improve_cuts(one, {1}, example_link, {.period = 3}), Cuts{1});
}

TEST(Fusion, merges_all_when_all_is_ready_at_once_and_nothing_when_starting_is_free) {
  const auto at_once = units_of({0, 0, 0, 0}, {1, 2, 3, 4});
  EXPECT_EQ(merge_greedily(at_once, example_link), Cuts{4});
  EXPECT_EQ(merge_optimally(at_once, example_link), Cuts{4});
  const LinkCost free_start{.start = 0ms, .seconds_per_byte = 1e-3};
  const auto steady = units_of({1, 1, 1, 1}, {1, 1, 1, 1});
  EXPECT_EQ(merge_greedily(steady, free_start), layerwise(4));
  EXPECT_EQ(score_cuts(steady, merge_optimally(steady, free_start), free_start, {}).end_ns, 5e6);
}

TEST(Fusion, scores_the_worst_iteration_of_a_period) {
  // Phases in turn: groups 0, 2 and 4 in one iteration, 1 and 3 in the other.
  const CutsScore score =
      score_cuts(calm(), layerwise(5), example_link, {.rule = PhaseRule::residue, .period = 2});
  EXPECT_EQ(score.end_ns, 13e6);  // group 4: ready at 10, 2 + 1
  EXPECT_EQ(score.bytes_max, 7U);
  EXPECT_EQ(score.groups, 5U);
  EXPECT_EQ(end_ms(calm(), layerwise(5), 100), 13.0);
}

TEST(Fusion, moves_cuts_until_no_move_helps) {
  const auto even = units_of({1, 1, 1, 1, 1, 1}, {4, 4, 4, 4, 4, 4});
  const PhaseOptions phases{.rule = PhaseRule::residue, .period = 2};
  const Cuts improved = improve_cuts(even, {1, 6}, example_link, phases);
  EXPECT_LT(
      score_cuts(even, improved, example_link, phases),
      score_cuts(even, {1, 6}, example_link, phases));
  EXPECT_EQ(improved, (Cuts{3, 6}));  // ends at 14 as {4, 6} does, and is level in bytes
}

}  // namespace
}  // namespace stagger
