#include "ps/grouping.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// Layers in forward order; 0 is a layer without parameters.
std::vector<LayerProfile> layers_of(const std::vector<std::uint64_t>& bytes) {
  std::vector<LayerProfile> layers;
  for (const std::uint64_t each : bytes) {
    layers.push_back({.name = "layer", .parameters = each / 4, .bytes = each});
  }
  return layers;
}

GroupRange range(std::size_t begin, std::size_t end, std::uint64_t bytes) {
  return {.layers = {.begin = begin, .end = end}, .bytes = bytes};
}

using Groups = std::vector<GroupRange>;

TEST(Grouping, layerwise_makes_a_group_of_each_layer_with_parameters_output_side_first) {
  EXPECT_EQ(
      group_layers(layers_of({8, 16, 4}), {.planner = GroupPlanner::layerwise}),
      (Groups{range(2, 3, 4), range(1, 2, 16), range(0, 1, 8)}));
}

TEST(Grouping, puts_a_layer_without_parameters_to_the_layer_before_it) {
  // LeNet's shape: convolution, activation, pool, flatten, linear, activation, linear.
  EXPECT_EQ(
      group_layers(layers_of({8, 0, 0, 0, 16, 0, 4}), {.planner = GroupPlanner::layerwise}),
      (Groups{range(6, 7, 4), range(4, 6, 16), range(0, 4, 8)}));
}

TEST(Grouping, puts_leading_layers_without_parameters_to_the_first_with) {
  EXPECT_EQ(
      group_layers(layers_of({0, 0, 8, 4}), {.planner = GroupPlanner::layerwise}),
      (Groups{range(3, 4, 4), range(0, 3, 8)}));
}

TEST(Grouping, all_is_one_group) {
  EXPECT_EQ(
      group_layers(layers_of({0, 8, 0, 4, 0}), {.planner = GroupPlanner::all}),
      (Groups{range(0, 5, 12)}));
}

TEST(Grouping, by_bytes_closes_a_group_that_has_reached_its_limit) {
  // Backward order: 4, 4, 20, 8, 8, 8, 4.
  const GroupingOptions options{
      .planner = GroupPlanner::bytes, .bytes_max = 16, .first_bytes_max = 8};
  EXPECT_EQ(
      group_layers(layers_of({4, 8, 8, 8, 20, 4, 4}), options),
      (Groups{range(5, 7, 8), range(4, 5, 20), range(2, 4, 16), range(0, 2, 12)}));
}

TEST(Grouping, by_bytes_leaves_no_group_behind_the_last_layer) {
  const GroupingOptions options{
      .planner = GroupPlanner::bytes, .bytes_max = 16, .first_bytes_max = 16};
  EXPECT_EQ(group_layers(layers_of({16, 16}), options), (Groups{range(1, 2, 16), range(0, 1, 16)}));
}

TEST(Grouping, by_count_makes_the_largest_group_as_small_as_it_can_be) {
  // A greedy share of 12 each would close {4,4,8} at 16; cutting before the 8 gives 12 at most.
  EXPECT_EQ(
      group_layers(layers_of({4, 8, 8, 4, 4, 8}), {.planner = GroupPlanner::count, .count = 3}),
      (Groups{range(4, 6, 12), range(2, 4, 12), range(0, 2, 12)}));
}

TEST(Grouping, by_count_levels_the_groups_beside_a_giant) {
  EXPECT_EQ(
      group_layers(layers_of({40, 4, 4, 4, 4, 4, 4}), {.planner = GroupPlanner::count, .count = 4}),
      (Groups{range(5, 7, 8), range(3, 5, 8), range(1, 3, 8), range(0, 1, 40)}));
}

TEST(Grouping, by_count_defaults_to_twice_the_period) {
  const std::vector<LayerProfile> layers = layers_of({4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  EXPECT_EQ(group_layers(layers, {.period = 3}).size(), 6U);
  EXPECT_EQ(group_layers(layers, {.period = 2}).size(), 4U);
  EXPECT_EQ(group_layers(layers, {.count = 5, .period = 2}).size(), 5U);
}

TEST(Grouping, by_count_makes_no_more_groups_than_layers_with_parameters) {
  EXPECT_EQ(group_layers(layers_of({4, 0, 4, 0, 4}), {.period = 50}).size(), 3U);
  EXPECT_EQ(group_layers(layers_of({4}), {.count = 9}).size(), 1U);
}

TEST(Grouping, names_read_back) {
  for (const GroupPlanner planner :
       {GroupPlanner::layerwise,
        GroupPlanner::all,
        GroupPlanner::bytes,
        GroupPlanner::count,
        GroupPlanner::mg_wfbp,
        GroupPlanner::optimal}) {
    EXPECT_EQ(parse_group_planner(to_string(planner)), planner);
  }
  EXPECT_EQ(parse_group_planner("layer"), std::nullopt);
}

/// Forward order; times in ms.
std::vector<LayerProfile> timed_layers() {
  std::vector<LayerProfile> layers = layers_of({8, 24, 0, 4, 0, 4, 16});
  const std::vector<int> backward{2, 3, 1, 1, 0, 1, 2};
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    layers[layer].backward = backward[layer] * 1ms;
  return layers;
}

constexpr LinkCost link_of_the_example{.start = 2ms, .seconds_per_byte = 0.125e-3};

TEST(Grouping, by_time_keeps_layers_without_parameters_with_the_layer_before) {
  const Groups expected{range(3, 7, 24), range(0, 3, 32)};
  for (const GroupPlanner planner : {GroupPlanner::mg_wfbp, GroupPlanner::optimal}) {
    EXPECT_EQ(
        group_layers(
            timed_layers(), {.planner = planner, .period = 1, .link = link_of_the_example}),
        expected)
        << to_string(planner);
  }
}

TEST(Grouping, by_time_is_exact_when_all_groups_share_an_iteration) {
  const GroupingOptions alone{
      .planner = GroupPlanner::optimal, .period = 1, .link = link_of_the_example};
  GroupingOptions together = alone;
  together.period = 5;
  together.phases = PhaseRule::together;
  EXPECT_EQ(group_layers(timed_layers(), together), group_layers(timed_layers(), alone));
}

TEST(GroupingDeathTest, by_time_needs_the_link) {
  EXPECT_DEATH(group_layers(timed_layers(), {.planner = GroupPlanner::mg_wfbp}), "without a link");
}

TEST(GroupingDeathTest, needs_a_layer_with_parameters) {
  EXPECT_DEATH(group_layers(layers_of({0, 0}), {}), "no layer with parameters");
}

}  // namespace
}  // namespace stagger
