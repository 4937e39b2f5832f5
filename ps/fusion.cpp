#include "ps/fusion.hpp"

#include <algorithm>
#include <limits>

#include "observability/check.hpp"
#include "ps/phases.hpp"

namespace stagger {
namespace {

double ns(Duration duration) {
  return static_cast<double>(duration.count());
}

/// The best groups over the first units, and where the last of those groups begins.
struct Prefix {
  double free_ns = std::numeric_limits<double>::infinity();  ///< the link is free again
  std::size_t groups = 0;
  double squares = 0.0;  ///< of the groups' bytes
  std::size_t begin = 0;

  bool better_than(const Prefix& other) const {
    if (free_ns != other.free_ns) return free_ns < other.free_ns;
    if (groups != other.groups) return groups < other.groups;
    return squares < other.squares;
  }
};

std::vector<std::uint64_t> group_bytes(std::span<const FusionUnit> units, const Cuts& cuts) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(cuts.size());
  std::size_t unit = 0;
  for (const std::size_t end : cuts) {
    CHECK_LT(unit, end);
    CHECK_LE(end, units.size());
    std::uint64_t sum = 0;
    for (; unit < end; ++unit)
      sum += units[unit].bytes;
    bytes.push_back(sum);
  }
  CHECK_EQ(unit, units.size());
  return bytes;
}

}  // namespace

Cuts merge_greedily(std::span<const FusionUnit> units, const LinkCost& link) {
  Cuts cuts;
  double free_ns = 0.0;
  std::uint64_t bytes = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    bytes += units[unit].bytes;
    const double begin = std::max(free_ns, ns(units[unit].ready));
    const bool last = unit + 1 == units.size();
    if (!last && ns(units[unit + 1].ready) < begin + ns(link.start)) continue;
    cuts.push_back(unit + 1);
    free_ns = begin + link.need_ns(bytes);
    bytes = 0;
  }
  return cuts;
}

Cuts merge_optimally(std::span<const FusionUnit> units, const LinkCost& link) {
  std::vector<Prefix> best(units.size() + 1);
  best[0].free_ns = 0.0;
  for (std::size_t end = 1; end <= units.size(); ++end) {
    std::uint64_t bytes = 0;
    for (std::size_t begin = end; begin-- > 0;) {
      bytes += units[begin].bytes;
      const Prefix& before = best[begin];
      const auto size = static_cast<double>(bytes);
      const Prefix candidate{
          .free_ns = std::max(before.free_ns, ns(units[end - 1].ready)) + link.need_ns(bytes),
          .groups = before.groups + 1,
          .squares = before.squares + size * size,
          .begin = begin};
      if (candidate.better_than(best[end])) best[end] = candidate;
    }
  }
  Cuts cuts;
  for (std::size_t end = units.size(); end > 0; end = best[end].begin)
    cuts.push_back(end);
  std::ranges::reverse(cuts);
  return cuts;
}

CutsScore score_cuts(
    std::span<const FusionUnit> units,
    const Cuts& cuts,
    const LinkCost& link,
    const PhaseOptions& phases) {
  const std::vector<std::uint64_t> bytes = group_bytes(units, cuts);
  const std::vector<std::uint32_t> phase = assign_phases(phases.rule, bytes, phases.period);

  // A period has more iterations than groups at most; only those with groups matter.
  struct Iteration {
    double free_ns = 0.0;
    std::uint64_t bytes = 0;
  };

  std::vector<Iteration> iterations(std::min<std::size_t>(phases.period, cuts.size()));
  std::vector<std::uint32_t> used(phase);
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  CutsScore score{.groups = cuts.size()};
  for (std::size_t group = 0; group < cuts.size(); ++group) {
    const auto at = std::ranges::lower_bound(used, phase[group]) - used.begin();
    Iteration& iteration = iterations[static_cast<std::size_t>(at)];
    iteration.free_ns =
        std::max(iteration.free_ns, ns(units[cuts[group] - 1].ready)) + link.need_ns(bytes[group]);
    iteration.bytes += bytes[group];
    score.end_ns = std::max(score.end_ns, iteration.free_ns);
    score.bytes_max = std::max(score.bytes_max, iteration.bytes);
  }
  return score;
}

Cuts improve_cuts(
    std::span<const FusionUnit> units,
    Cuts cuts,
    const LinkCost& link,
    const PhaseOptions& phases) {
  constexpr std::size_t work_max = 1'000'000;  // a try costs as many steps as there are units
  std::size_t tries = work_max / std::max<std::size_t>(units.size(), 1);
  CutsScore best = score_cuts(units, cuts, link, phases);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
      for (const bool up : {false, true}) {
        const std::size_t here = cuts[cut];
        const std::size_t low = cut > 0 ? cuts[cut - 1] + 1 : 1;
        if (up ? here + 1 >= cuts[cut + 1] : here <= low) continue;
        if (tries-- == 0) return cuts;
        cuts[cut] = up ? here + 1 : here - 1;
        const CutsScore score = score_cuts(units, cuts, link, phases);
        if (score < best) {
          best = score;
          better = true;
        } else {
          cuts[cut] = here;
        }
      }
    }
  }
  return cuts;
}

}  // namespace stagger
