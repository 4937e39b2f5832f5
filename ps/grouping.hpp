#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/time.hpp"
#include "ps/link_cost.hpp"
#include "ps/policy.hpp"
#include "tensor/layout.hpp"

/// Merges consecutive layers into groups. Pure.
namespace stagger {

/// Measured or given facts of one layer. Lists of these are in forward order.
struct LayerProfile {
  std::string name;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  Duration forward{0};
  Duration backward{0};
};

enum class GroupPlanner : std::uint8_t {
  layerwise,  ///< one group per layer with parameters (WFBP)
  all,        ///< one group
  bytes,  ///< closes a group when it reaches the cap, the first at first_bytes (PyTorch DDP's rule)
  count,  ///< N groups level in bytes
  mg_wfbp,  ///< the greedy merge of MG-WFBP, by measured times and the link's cost
  /// All groups in one iteration (T = 1, or phases together): the exact optimum. T > 1: a heuristic
  /// that compares the cuts of mg_wfbp, of the exact optimum for T = 1, of layerwise, all and count
  /// with T, 2T, 3T and 4T groups by what the phases make of them, and betters the best one by
  /// moving cuts. Never worse than mg_wfbp.
  optimal,
};

/// Whether the planner goes by measured times and the link's cost.
constexpr bool needs_link(GroupPlanner planner) {
  return planner == GroupPlanner::mg_wfbp || planner == GroupPlanner::optimal;
}

std::string_view to_string(GroupPlanner planner);
std::optional<GroupPlanner> parse_group_planner(std::string_view text);

struct GroupingOptions {
  GroupPlanner planner = GroupPlanner::count;
  std::uint32_t count = 0;  ///< N; 0: 2*period where the layers allow
  std::uint64_t bytes_max = std::uint64_t{25} << 20;
  std::uint64_t first_bytes_max = std::uint64_t{1} << 20;
  std::uint32_t period = 3;                     ///< T, for the default count and for `optimal`
  PhaseRule phases = PhaseRule::residue;        ///< for `optimal`
  std::optional<LinkCost> link = std::nullopt;  ///< as all workers share it; mg_wfbp and optimal
};

/// A group: its layers (forward order, half open) and bytes. In lists of these the index is the
/// GroupId: 0 is the output side, groups in the order in which backward finishes them.
struct GroupRange {
  LayerRange layers;
  std::uint64_t bytes = 0;

  bool operator==(const GroupRange&) const = default;
};

/// REQUIRES at least one layer with parameters, and the link where the planner needs it.
/// ENSURES the ranges partition the layers and no group is without parameters: a layer without
/// parameters belongs to the group of the layer before it in forward order (its backward runs just
/// before theirs), at the input side to the one after.
std::vector<GroupRange> group_layers(
    std::span<const LayerProfile> layers, const GroupingOptions& options);

}  // namespace stagger
