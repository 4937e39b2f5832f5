#include "ps/slots.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {

std::string_view to_string(SlotRule rule) {
  return rule == SlotRule::paper ? "paper" : "measured";
}

std::string_view to_string(SlotClock clock) {
  return clock == SlotClock::local ? "local" : "shared";
}

GroupTimeline group_timeline(
    std::span<const LayerProfile> layers, std::span<const GroupRange> groups) {
  GroupTimeline timeline;
  std::size_t reached = layers.size();
  for (const GroupRange& group : groups) {
    CHECK(group.layers.begin < group.layers.end, group.layers.begin, group.layers.end);
    CHECK_EQ(group.layers.end, reached);  // groups follow each other, from the output side
    timeline.start.push_back(timeline.end);
    for (std::size_t layer = group.layers.begin; layer < group.layers.end; ++layer) {
      timeline.end += layers[layer].backward;
    }
    reached = group.layers.begin;
  }
  CHECK_EQ(reached, 0U);
  return timeline;
}

std::vector<SlotWindow> paper_slots(
    const GroupTimeline& timeline, std::uint32_t period, std::uint32_t workers) {
  const std::vector<Duration>& start = timeline.start;  // the paper's tau_g, counted from 0
  const std::size_t groups = start.size();
  CHECK_LE(1U, period);
  CHECK_LE(1U, workers);
  CHECK_LE(1U, groups);
  CHECK(std::ranges::is_sorted(start), "groups start in order");
  CHECK(start.back() <= timeline.end, "and before the end");

  std::vector<SlotWindow> slots;
  slots.reserve(groups);
  for (std::size_t group = 0; group < groups; ++group) {
    const Duration current = group + 1 < groups ? start[group + 1] : timeline.end;
    const std::size_t following = group + 1 + period;  // after the next group of the same phase
    // The half is the forward's way to this group, taken as half of the backward of the groups
    // before it.
    Duration next = timeline.end + (timeline.end - current) / 2;
    if (following < groups) next = start[following];
    if (following == groups) next = timeline.end;
    const Duration window = next - current;
    slots.push_back({.current = current, .window = window, .slot = window / workers, .delay = {}});
  }
  return slots;
}

}  // namespace stagger
