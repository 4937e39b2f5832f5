#include "tensor/arena.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/layout.hpp"
#include "tests/support/groups.hpp"

namespace stagger {
namespace {

/// Four layers, the third without parameters: 15 + 5, 7 + 1, none, 33 floats.
std::vector<ParameterInfo> four_layers() {
  return {
      {.name = "a.weight", .shape = {5, 3}, .layer = 0},
      {.name = "a.bias", .shape = {5}, .layer = 0},
      {.name = "b.weight", .shape = {1, 7}, .layer = 1},
      {.name = "b.bias", .shape = {1}, .layer = 1},
      {.name = "d.weight", .shape = {3, 11}, .layer = 3}};
}

TEST(ArenaLayout, places_groups_in_backward_order_on_lines_of_64_bytes) {
  const ArenaLayout layout(four_layers(), groups_of(4, {2}));
  ASSERT_EQ(layout.groups(), 2U);
  EXPECT_EQ(layout.group(0).offset, 0U);
  EXPECT_EQ(layout.group(0).size, 33U);
  EXPECT_EQ(layout.group(1).offset, 48U);
  EXPECT_EQ(layout.group(1).size, 28U);
  EXPECT_EQ(layout.size(), 80U);
  EXPECT_EQ(layout.parameter(4).offset, 0U);
}

TEST(ArenaLayout, packs_a_groups_parameters_in_forward_order_without_gaps) {
  const ArenaLayout layout(four_layers(), groups_of(4));
  std::size_t expected = 0;
  for (std::size_t index = 0; index < layout.parameters().size(); ++index) {
    EXPECT_EQ(layout.parameter(index).offset, expected);
    EXPECT_EQ(layout.parameter(index).size, layout.parameters()[index].size());
    expected += layout.parameter(index).size;
  }
  EXPECT_EQ(layout.group(0).size, expected);
}

TEST(ArenaLayout, holds_every_parameter_once_whatever_the_groups) {
  for (const std::vector<std::size_t>& cuts :
       std::vector<std::vector<std::size_t>>{{}, {1}, {3, 1}}) {
    const ArenaLayout layout(four_layers(), groups_of(4, cuts));
    std::vector<int> used(layout.size(), 0);
    for (std::size_t index = 0; index < layout.parameters().size(); ++index) {
      const ArenaLayout::Span place = layout.parameter(index);
      for (std::size_t i = 0; i < place.size; ++i) {
        ++used.at(place.offset + i);
      }
    }
    EXPECT_EQ(std::count(used.begin(), used.end(), 1), 61);
    EXPECT_EQ(std::count(used.begin(), used.end(), 0), static_cast<int>(layout.size()) - 61);
  }
}

TEST(ArenaLayoutDeathTest, refuses_groups_that_are_no_partition) {
  const LayerRange first{.begin = 0, .end = 2};
  const LayerRange second{.begin = 2, .end = 4};
  const LayerRange middle{.begin = 1, .end = 3};
  const LayerRange last{.begin = 3, .end = 4};
  using Groups = std::vector<LayerRange>;
  for (const Groups& groups :
       {Groups{},
        Groups{first, second},
        Groups{last, first},
        Groups{second},
        Groups{middle, first}}) {
    EXPECT_DEATH(ArenaLayout(four_layers(), groups), "CHECK failed");
  }
}

TEST(AlignedFloats, are_aligned_and_zero_up_to_the_next_line) {
  for (const std::size_t count : {1U, 15U, 16U, 17U, 1000U}) {
    const AlignedFloats floats(count);
    ASSERT_EQ(floats.size(), count);
    const float* const begin = floats.span().data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 64, 0U);
    EXPECT_TRUE(std::all_of(
        begin, begin + (count + 15) / 16 * 16, [](float value) { return value == 0.0F; }));
  }
  EXPECT_TRUE(AlignedFloats(0).span().empty());
}

TEST(Arena, hands_out_groups_that_are_aligned_and_hold_their_parameters) {
  Arena arena(ArenaLayout(four_layers(), groups_of(4, {2})));
  for (std::size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.group(group).data()) % 64, 0U);
  }
  std::fill(arena.group(1).begin(), arena.group(1).end(), 1.0F);
  for (std::size_t index = 0; index < 4; ++index) {
    for (const float value : arena.parameter(index)) {
      EXPECT_EQ(value, 1.0F);
    }
  }
  EXPECT_EQ(arena.parameter(4)[0], 0.0F);
  EXPECT_EQ(std::accumulate(arena.all().begin(), arena.all().end(), 0.0F), 28.0F);
}

TEST(Arena, assigns_by_parameter_across_groupings) {
  Arena source(ArenaLayout(four_layers(), groups_of(4)));
  float next = 0.0F;
  for (std::size_t index = 0; index < source.layout().parameters().size(); ++index) {
    for (float& value : source.parameter(index)) {
      value = next++;
    }
  }
  Arena target(ArenaLayout(four_layers(), groups_of(4, {3, 1})));
  target.assign(source);
  const Arena& found = target;
  for (std::size_t index = 0; index < found.layout().parameters().size(); ++index) {
    const std::span<const float> expected = source.parameter(index);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.parameter(index).begin()));
  }
}

TEST(ArenaDeathTest, refuses_to_assign_from_another_model) {
  Arena target(ArenaLayout(four_layers(), groups_of(4)));
  std::vector<ParameterInfo> others = four_layers();
  others[0].shape = {3, 5};
  const Arena source(ArenaLayout(others, groups_of(4)));
  EXPECT_DEATH(target.assign(source), "different models");
}

}  // namespace
}  // namespace stagger
