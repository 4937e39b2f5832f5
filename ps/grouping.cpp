#include "ps/grouping.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "observability/check.hpp"
#include "ps/fusion.hpp"

namespace stagger {
namespace {

/// What is never split: a layer with parameters and the layers without that go with it.
using Unit = GroupRange;

/// In backward order.
std::vector<Unit> split_units(std::span<const LayerProfile> layers) {
  std::vector<Unit> units;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].parameters > 0) {
      const std::size_t begin = units.empty() ? 0 : layer;
      if (!units.empty()) units.back().layers.end = layer;
      units.push_back({.layers = {.begin = begin, .end = layers.size()}, .bytes = 0});
    }
    if (!units.empty()) units.back().bytes += layers[layer].bytes;
  }
  std::ranges::reverse(units);
  return units;
}

/// Merges runs of units; `ends[g]` is the first unit after group g.
std::vector<GroupRange> merge_units(
    std::span<const Unit> units, std::span<const std::size_t> ends) {
  std::vector<GroupRange> groups;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    CHECK_LT(begin, end);
    CHECK_LE(end, units.size());
    GroupRange group{
        .layers = {.begin = units[end - 1].layers.begin, .end = units[begin].layers.end},
        .bytes = 0};
    for (const Unit& unit : units.subspan(begin, end - begin))
      group.bytes += unit.bytes;
    groups.push_back(group);
    begin = end;
  }
  CHECK_EQ(begin, units.size());
  return groups;
}

std::vector<std::size_t> cut_between_all(std::span<const Unit> units) {
  std::vector<std::size_t> ends(units.size());
  std::iota(ends.begin(), ends.end(), std::size_t{1});
  return ends;
}

/// PyTorch DDP: a bucket closes when it has reached its limit, which is smaller for the first, so
/// that sending starts early.
std::vector<std::size_t> cut_by_bytes(std::span<const Unit> units, const GroupingOptions& options) {
  std::vector<std::size_t> ends;
  std::uint64_t bytes = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    bytes += units[unit].bytes;
    const std::uint64_t limit = ends.empty() ? options.first_bytes_max : options.bytes_max;
    if (bytes >= limit || unit + 1 == units.size()) {
      ends.push_back(unit + 1);
      bytes = 0;
    }
  }
  return ends;
}

/// Whether groups of at most `bytes_max` each can be as few as `count`.
bool fits(std::span<const Unit> units, std::size_t count, std::uint64_t bytes_max) {
  std::size_t groups = 1;
  std::uint64_t bytes = 0;
  for (const Unit& unit : units) {
    if (unit.bytes > bytes_max) return false;
    if (bytes + unit.bytes > bytes_max) {
      ++groups;
      bytes = 0;
    }
    bytes += unit.bytes;
  }
  return groups <= count;
}

std::uint64_t least_largest_group(std::span<const Unit> units, std::size_t count) {
  std::uint64_t high = 0;
  for (const Unit& unit : units)
    high += unit.bytes;
  std::uint64_t low = 0;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (fits(units, count, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

/// Least sum of squares of the first groups over the first units, and where the last of those
/// groups begins.
struct Partial {
  double squares = std::numeric_limits<double>::infinity();
  std::size_t begin = 0;
};

/// The best last group that ends at unit `end`, after one group fewer as `before` tells.
Partial best_last_group(
    std::span<const Unit> units,
    std::span<const Partial> before,
    std::size_t end,
    std::uint64_t bytes_max) {
  Partial best;
  std::uint64_t bytes = 0;
  for (std::size_t begin = end; begin-- > 0;) {
    bytes += units[begin].bytes;
    if (bytes > bytes_max) break;
    const auto size = static_cast<double>(bytes);
    const double squares = before[begin].squares + size * size;
    if (squares <= best.squares) best = {.squares = squares, .begin = begin};
  }
  return best;
}

/// The largest group is as small as it can be; below that the sum of squares is least, so that the
/// groups that are not the largest are level too. Of equal cuts the one whose last groups begin
/// first.
std::vector<std::size_t> cut_by_count(std::span<const Unit> units, std::size_t count) {
  const std::uint64_t bytes_max = least_largest_group(units, count);
  std::vector<std::vector<Partial>> best(count + 1, std::vector<Partial>(units.size() + 1));
  best[0][0].squares = 0.0;
  for (std::size_t groups = 1; groups <= count; ++groups) {
    for (std::size_t end = groups; end <= units.size(); ++end) {
      best[groups][end] = best_last_group(units, best[groups - 1], end, bytes_max);
    }
  }
  CHECK(std::isfinite(best[count][units.size()].squares), "cut into", count, units.size());
  std::vector<std::size_t> ends(count);
  std::size_t end = units.size();
  for (std::size_t group = count; group-- > 0;) {
    ends[group] = end;
    end = best[group + 1][end].begin;
  }
  return ends;
}

/// A unit is ready when the backward of its first layer is done.
std::vector<FusionUnit> fusion_units(
    std::span<const Unit> units, std::span<const LayerProfile> layers) {
  std::vector<FusionUnit> timed;
  timed.reserve(units.size());
  Duration ready{0};
  for (const Unit& unit : units) {
    for (std::size_t layer = unit.layers.begin; layer < unit.layers.end; ++layer)
      ready += layers[layer].backward;
    timed.push_back({.ready = ready, .bytes = unit.bytes});
  }
  return timed;
}

/// The best of what is worth a try when phases share the groups.
Cuts cut_for_phases(
    std::span<const Unit> units,
    std::span<const FusionUnit> timed,
    const LinkCost& link,
    const PhaseOptions& phases) {
  std::vector<Cuts> candidates{
      merge_greedily(timed, link),
      merge_optimally(timed, link),
      cut_between_all(units),
      {units.size()}};
  for (std::uint64_t times = 1; times <= 4; ++times) {
    const std::uint64_t count = times * phases.period;
    if (count < units.size()) candidates.push_back(cut_by_count(units, count));
  }
  const auto score = [&](const Cuts& cuts) {
    return score_cuts(timed, cuts, link, phases);
  };
  const auto best = std::ranges::min_element(candidates, {}, score);
  return improve_cuts(timed, *best, link, phases);
}

Cuts cut_by_time(
    std::span<const Unit> units,
    std::span<const LayerProfile> layers,
    const GroupingOptions& options) {
  const std::vector<FusionUnit> timed = fusion_units(units, layers);
  CHECK(options.link.has_value(), "planner without a link", to_string(options.planner));
  const LinkCost link = options.link.value_or(LinkCost{});
  if (options.planner == GroupPlanner::mg_wfbp) return merge_greedily(timed, link);
  if (options.period == 1 || options.phases == PhaseRule::together) {
    return merge_optimally(timed, link);
  }
  return cut_for_phases(units, timed, link, {.rule = options.phases, .period = options.period});
}

std::vector<std::size_t> cut(
    std::span<const Unit> units,
    std::span<const LayerProfile> layers,
    const GroupingOptions& options) {
  switch (options.planner) {
    case GroupPlanner::layerwise:
      return cut_between_all(units);
    case GroupPlanner::all:
      return {units.size()};
    case GroupPlanner::bytes:
      return cut_by_bytes(units, options);
    case GroupPlanner::count: {
      const std::size_t wanted =
          options.count > 0 ? options.count : std::size_t{2} * options.period;
      return cut_by_count(units, std::min(wanted, units.size()));
    }
    case GroupPlanner::mg_wfbp:
    case GroupPlanner::optimal:
      return cut_by_time(units, layers, options);
  }
  CHECK(false, "no such planner", static_cast<int>(options.planner));
  return {};
}

}  // namespace

std::string_view to_string(GroupPlanner planner) {
  switch (planner) {
    case GroupPlanner::layerwise:
      return "layerwise";
    case GroupPlanner::all:
      return "all";
    case GroupPlanner::bytes:
      return "bytes";
    case GroupPlanner::count:
      return "count";
    case GroupPlanner::mg_wfbp:
      return "mg_wfbp";
    case GroupPlanner::optimal:
      return "optimal";
  }
  CHECK(false, "no such planner", static_cast<int>(planner));
  return {};
}

std::optional<GroupPlanner> parse_group_planner(std::string_view text) {
  for (const GroupPlanner planner :
       {GroupPlanner::layerwise,
        GroupPlanner::all,
        GroupPlanner::bytes,
        GroupPlanner::count,
        GroupPlanner::mg_wfbp,
        GroupPlanner::optimal}) {
    if (to_string(planner) == text) return planner;
  }
  return std::nullopt;
}

std::vector<GroupRange> group_layers(
    std::span<const LayerProfile> layers, const GroupingOptions& options) {
  CHECK_LT(0U, std::max(options.count, options.period));
  const std::vector<Unit> units = split_units(layers);
  CHECK(!units.empty(), "no layer with parameters among", layers.size());
  return merge_units(units, cut(units, layers, options));
}

}  // namespace stagger
