#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/time.hpp"
#include "ps/link_cost.hpp"
#include "ps/policy.hpp"

/// Merging by time: how many transfers backward hides, on a link whose cost is known. Pure.
///
/// Model: one transfer at a time per iteration; it begins when its group's backward is done and the
/// link is free, and takes start + bytes * seconds_per_byte.
namespace stagger {

/// What is never split, in backward order.
struct FusionUnit {
  Duration ready{0};  ///< its backward is done, counted from the start of backward
  std::uint64_t bytes = 0;
};

/// Element g is the first unit after group g; the last is the number of units.
using Cuts = std::vector<std::size_t>;

/// MG-WFBP's greedy rule, in O(L): a unit joins the next one when that one is ready before the
/// first of them could have got through its start-up. Not optimal: it may hold back a large early
/// group for a start-up that a later merge would have saved.
Cuts merge_greedily(std::span<const FusionUnit> units, const LinkCost& link);

/// Least end of the last transfer when all groups are exchanged in one iteration, in O(L^2) by
/// dynamic programming. Exact: a link that is free earlier never hurts. Of equal choices for the
/// units up to a cut the one with fewer groups, then the one more level in bytes.
Cuts merge_optimally(std::span<const FusionUnit> units, const LinkCost& link);

/// Iterations of a period, to compare cuts; smaller is better, the first member counts most.
struct CutsScore {
  double end_ns = 0.0;          ///< of the last transfer, in the worst iteration
  std::uint64_t bytes_max = 0;  ///< of the iteration that carries most
  std::size_t groups = 0;

  auto operator<=>(const CutsScore&) const = default;
};

struct PhaseOptions {
  PhaseRule rule = PhaseRule::residue;
  std::uint32_t period = 1;
};

CutsScore score_cuts(
    std::span<const FusionUnit> units,
    const Cuts& cuts,
    const LinkCost& link,
    const PhaseOptions& phases);

/// Moves one cut by one unit as long as that betters the score, within a bounded number of tries: a
/// local optimum, no more. ENSURES the score is not worse than before.
Cuts improve_cuts(
    std::span<const FusionUnit> units, Cuts cuts, const LinkCost& link, const PhaseOptions& phases);

}  // namespace stagger
