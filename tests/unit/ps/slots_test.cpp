#include "ps/slots.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// The worked example: backward times 4,4,6,6,8,8,8,10,6 ms.
GroupTimeline example() {
  GroupTimeline timeline;
  for (const int start : {0, 4, 8, 14, 20, 28, 36, 44, 54})
    timeline.start.push_back(start * 1ms);
  timeline.end = 60ms;
  return timeline;
}

std::vector<double> windows_ms(std::uint32_t period) {
  std::vector<double> windows;
  for (const SlotWindow& slot : paper_slots(example(), period, 1)) {
    windows.push_back(to_microseconds(slot.window) / 1000);
    EXPECT_EQ(slot.slot, slot.window);
  }
  return windows;
}

using Windows = std::vector<double>;

TEST(Slots, follow_the_paper_with_period_one) {
  EXPECT_EQ(windows_ms(1), (Windows{4, 6, 6, 8, 8, 8, 10, 6, 0}));
}

TEST(Slots, follow_the_paper_with_period_two) {
  EXPECT_EQ(windows_ms(2), (Windows{10, 12, 14, 16, 16, 18, 16, 9, 0}));
}

TEST(Slots, follow_the_paper_with_period_three) {
  EXPECT_EQ(windows_ms(3), (Windows{16, 20, 22, 24, 26, 24, 24, 9, 0}));
}

TEST(Slots, follow_the_paper_with_period_four) {
  EXPECT_EQ(windows_ms(4), (Windows{24, 28, 30, 34, 32, 36, 24, 9, 0}));
}

TEST(Slots, follow_the_paper_with_as_many_iterations_as_groups_and_more) {
  const Windows expected{84, 78, 69, 60, 48, 36, 24, 9, 0};
  EXPECT_EQ(windows_ms(9), expected);
  EXPECT_EQ(windows_ms(12), expected);
  EXPECT_EQ(windows_ms(0xFFFFFFFF), expected);
}

TEST(Slots, are_not_read_one_based) {
  EXPECT_NE(windows_ms(3), (Windows{14, 16, 20, 22, 24, 32, 36, 24, 0}));
  EXPECT_EQ(paper_slots(example(), 3, 1)[0].current, 4ms);  // not 0: group 0 is still computing
}

TEST(Slots, share_a_window_among_four_workers) {
  const std::vector<double> expected{4, 5, 5.5, 6, 6.5, 6, 6, 2.25, 0};
  const std::vector<SlotWindow> slots = paper_slots(example(), 3, 4);
  ASSERT_EQ(slots.size(), expected.size());
  for (std::size_t group = 0; group < slots.size(); ++group) {
    EXPECT_EQ(to_microseconds(slots[group].slot), expected[group] * 1000) << group;
  }
}

TEST(Slots, begin_when_the_groups_own_backward_is_done) {
  const std::vector<SlotWindow> slots = paper_slots(example(), 3, 4);
  std::vector<Duration> begins;
  for (const SlotWindow& slot : slots)
    begins.push_back(slot.current);
  EXPECT_EQ(begins, (std::vector<Duration>{4ms, 8ms, 14ms, 20ms, 28ms, 36ms, 44ms, 54ms, 60ms}));
}

TEST(Slots, of_the_last_group_are_empty) {
  for (const std::uint32_t period : {1U, 2U, 3U, 8U, 9U, 10U, 100U}) {
    EXPECT_EQ(paper_slots(example(), period, 4).back().window, 0ns) << period;
  }
}

TEST(Slots, of_a_single_group_are_empty) {
  const auto slots = paper_slots({.start = {0ns}, .end = 10ms}, 1, 4);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0], (SlotWindow{.current = 10ms, .window = 0ns, .slot = 0ns}));
}

TEST(Slots, timeline_runs_from_the_last_layer_to_the_first) {
  std::vector<LayerProfile> layers;
  for (const int time : {5, 4, 3, 2}) {
    layers.push_back(
        {.name = "layer", .parameters = 1, .bytes = 4, .forward = 1ms, .backward = time * 1ms});
  }
  const std::vector<GroupRange> groups{
      {.layers = {.begin = 3, .end = 4}, .bytes = 4},
      {.layers = {.begin = 1, .end = 3}, .bytes = 8},
      {.layers = {.begin = 0, .end = 1}, .bytes = 4}};
  const GroupTimeline timeline = group_timeline(layers, groups);
  EXPECT_EQ(timeline.start, (std::vector<Duration>{0ms, 2ms, 9ms}));
  EXPECT_EQ(timeline.end, 14ms);
}

TEST(SlotsDeathTest, refuse_a_period_of_zero_and_starts_out_of_order) {
  EXPECT_DEATH(paper_slots(example(), 0, 1), "period");
  EXPECT_DEATH(paper_slots(example(), 1, 0), "workers");
  EXPECT_DEATH(paper_slots({.start = {}, .end = 1ms}, 1, 1), "groups");
  EXPECT_DEATH(paper_slots({.start = {2ms, 1ms}, .end = 3ms}, 1, 1), "order");
  EXPECT_DEATH(paper_slots({.start = {0ms, 4ms}, .end = 3ms}, 1, 1), "end");
}

}  // namespace
}  // namespace stagger
