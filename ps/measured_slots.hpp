#pragma once

#include <span>
#include <vector>

#include "ps/link_cost.hpp"
#include "ps/plan.hpp"

/// Slots as long as pushes take. Pure.
namespace stagger {

struct MeasuredLink {
  LinkCost cost;        ///< of one worker's push
  double guard = 0.05;  ///< share of a push's time that a slot is longer
};

/// One plan over the pushes of each iteration of a period, earliest deadline first, so that no two
/// slots meet:
///
///   release   the group's backward is done
///   deadline  the next forward reaches the group; old_center: the group's next round, less the
///             replies' time
///   length    (a + b*bytes) * (1 + guard) for each worker, a group's slots one after the other
///
/// A group whose deadline cannot be kept has its slots all the same, as early as the others allow.
/// Index = GroupId. REQUIRES groups and phases of the plan, from these layers (forward order).
std::vector<SlotWindow> measured_slots(
    const Plan& plan, std::span<const LayerProfile> layers, const MeasuredLink& link);

}  // namespace stagger
