#include "ps/phases.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "observability/check.hpp"

namespace stagger {
namespace {

/// The groups of one iteration while they are chosen.
struct Bin {
  std::uint64_t bytes = 0;
  std::vector<std::size_t> groups;

  /// To the nearest group of the bin; an empty bin is further than any.
  std::size_t distance(std::size_t group) const {
    std::size_t nearest = std::numeric_limits<std::size_t>::max();
    for (const std::size_t other : groups)
      nearest = std::min(nearest, std::max(group, other) - std::min(group, other));
    return nearest;
  }
};

std::size_t choose_bin(std::span<const Bin> bins, std::size_t group) {
  std::size_t best = 0;
  std::size_t best_distance = bins[0].distance(group);
  for (std::size_t bin = 1; bin < bins.size(); ++bin) {
    if (bins[bin].bytes > bins[best].bytes) continue;
    const std::size_t distance = bins[bin].distance(group);
    if (bins[bin].bytes < bins[best].bytes || distance > best_distance) {
      best = bin;
      best_distance = distance;
    }
  }
  return best;
}

/// Longest processing time first.
std::vector<std::uint32_t> level_phases(
    std::span<const std::uint64_t> bytes, std::uint32_t period) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t left, std::size_t right) { return bytes[left] > bytes[right]; });
  std::vector<Bin> bins(std::min<std::size_t>(period, bytes.size()));
  std::vector<std::uint32_t> phases(bytes.size());
  for (const std::size_t group : order) {
    const std::size_t chosen = choose_bin(bins, group);
    bins[chosen].bytes += bytes[group];
    bins[chosen].groups.push_back(group);
    phases[group] = static_cast<std::uint32_t>((bytes.size() - chosen) % period);
  }
  return phases;
}

}  // namespace

std::vector<std::uint32_t> assign_phases(
    PhaseRule rule, std::span<const std::uint64_t> bytes, std::uint32_t period) {
  CHECK_LE(1U, period);
  const std::uint64_t groups = bytes.size();
  std::vector<std::uint32_t> phases(groups, 0);
  switch (rule) {
    case PhaseRule::residue:
      for (std::uint64_t group = 0; group < groups; ++group)
        phases[group] = static_cast<std::uint32_t>((groups - group) % period);
      return phases;
    case PhaseRule::together:
      return phases;
    case PhaseRule::contiguous:
      for (std::uint64_t group = 0; group < groups; ++group) {
        const std::uint64_t run = (groups - 1 - group) * period / groups;
        phases[group] = static_cast<std::uint32_t>((run + 1) % period);
      }
      return phases;
    case PhaseRule::level:
      return groups == 0 ? phases : level_phases(bytes, period);
  }
  CHECK(false, "no such phase rule", static_cast<int>(rule));
  return {};
}

}  // namespace stagger
