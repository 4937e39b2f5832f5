#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/time.hpp"
#include "ps/grouping.hpp"

/// The seed's slot rule (its Algorithm 1). Pure.
namespace stagger {

/// Relative to the start of backward.
struct GroupTimeline {
  std::vector<Duration> start;  ///< tau_g[i]: start of group i's backward
  Duration end{0};              ///< end of the whole backward
};

struct SlotWindow {
  Duration current{0};  ///< cur: group's own backward is done
  Duration window{0};   ///< next - cur; P slots divide it
  Duration slot{0};     ///< window / P

  bool operator==(const SlotWindow&) const = default;
};

/// Backward runs from the last layer to the first.
GroupTimeline group_timeline(
    std::span<const LayerProfile> layers, std::span<const GroupRange> groups);

///     cur[i]  = i+1 < N   ? start[i+1]   : end
///     next[i] = i+1+T < N ? start[i+1+T] : (i+1+T == N ? end : end + (end - cur[i]) / 2)
/// REQUIRES period >= 1, workers >= 1, at least one group, starts not decreasing.
std::vector<SlotWindow> paper_slots(
    const GroupTimeline& timeline, std::uint32_t period, std::uint32_t workers);

}  // namespace stagger
