#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ps/link_cost.hpp"
#include "ps/plan.hpp"

/// What a plan will cost on a link that is known. Pure.
///
/// Model: all workers compute alike, forward from the input side and backward from the output side,
/// in the times of the profile. Each direction of the PS's link carries one transfer at a time, in
/// the order in which groups are ready; the pushes of a group follow each other, under admission
/// `slots` none before its slot. A round's replies begin when its last push has ended. A compute
/// that needs a reply waits for it:
///
///   old_center   at the group's next due step, a whole period later
///   all others   when the next forward reaches the group
///
/// What is left out makes a run better (chunks of a reply that overlap pushes) or worse (optimiser,
/// reduction, late workers): the prediction compares plans, it promises no time.
namespace stagger {

/// A group's round, in the iteration of the period in which it is due. Times count from the start
/// of that iteration and include what earlier rounds left on the link.
struct RoundPrediction {
  Iteration iteration{1};  ///< 1..T
  Duration ready{0};       ///< its backward is done, on every worker
  Duration push_start{0};  ///< of the first worker
  Duration push_end{0};    ///< of the last
  Duration reply_end{0};   ///< the last worker has the center
  Duration exposed{0};     ///< how long compute waits for a reply of this group, once a period
  Duration need{0};        ///< all pushes back to back: P * (a + b*bytes)

  bool fits(const SlotWindow& slot) const { return need <= slot.window; }

  bool operator==(const RoundPrediction&) const = default;
};

struct Prediction {
  std::vector<RoundPrediction> rounds;  ///< index = GroupId
  Duration compute{0};                  ///< of one iteration: forward and backward
  Duration iteration{0};  ///< mean over a period: compute and waits, and never less than the link
                          ///< takes for a period's bytes
  Duration exposed{0};    ///< iteration - compute
  double link_utilisation = 0.0;  ///< share of the time in which the link carries pushes
  bool hidden = false;            ///< compute never waits, nor would it in a longer run
};

/// Rounds as they are once the period has come to repeat itself; a backlog that keeps growing is
/// cut off after a fixed number of periods, and shows in `iteration`.
/// REQUIRES a plan of these layers (forward order). O(N log N), whatever T.
Prediction predict(const Plan& plan, std::span<const LayerProfile> layers, const LinkCost& link);

}  // namespace stagger
