#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "net/time.hpp"
#include "ps/grouping.hpp"

/// Who may push when, inside an iteration. Pure.
namespace stagger {

/// Relative to the start of backward.
struct GroupTimeline {
  std::vector<Duration> start;  ///< tau_g[i]: start of group i's backward
  Duration end{0};              ///< end of the whole backward
};

/// How slots are planned: by the seed's Algorithm 1 (paper_slots), or by what pushes take on a link
/// that is known (ps/measured_slots.hpp).
enum class SlotRule : std::uint8_t { paper, measured };

std::string_view to_string(SlotRule rule);

/// What slots count from: each worker's own backward (local), or one moment that the PS makes known
/// (shared, ps/rhythm.hpp).
enum class SlotClock : std::uint8_t { local, shared };

std::string_view to_string(SlotClock clock);

struct SlotWindow {
  Duration current{0};  ///< the first slot begins; `paper`: the group's own backward is done
  Duration window{0};   ///< of all slots; P slots divide it
  Duration slot{0};     ///< window / P
  Duration delay{0};    ///< from the end of the group's own backward to `current`

  bool operator==(const SlotWindow&) const = default;
};

/// Backward runs from the last layer to the first.
GroupTimeline group_timeline(
    std::span<const LayerProfile> layers, std::span<const GroupRange> groups);

/// The seed's rule:
///
///     cur[i]  = i+1 < N   ? start[i+1]   : end
///     next[i] = i+1+T < N ? start[i+1+T] : (i+1+T == N ? end : end + (end - cur[i]) / 2)
/// REQUIRES period >= 1, workers >= 1, at least one group, starts not decreasing.
std::vector<SlotWindow> paper_slots(
    const GroupTimeline& timeline, std::uint32_t period, std::uint32_t workers);

}  // namespace stagger
