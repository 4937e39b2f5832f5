#include "ps/link_fit.hpp"

#include <algorithm>

namespace stagger {
namespace {

constexpr Duration longest = std::chrono::hours(1);
constexpr double fastest_bytes_per_second = 1e13 / 8.0;

/// Sums over the sizes, of x = bytes and y = seconds, each weighted with 1/y^2.
struct Sums {
  double one = 0.0;
  double x = 0.0;
  double y = 0.0;
  double xx = 0.0;
  double xy = 0.0;
};

}  // namespace

void LinkFit::add(std::uint64_t bytes, Duration time) {
  if (bytes == 0 || time <= Duration{0} || time > longest) return;
  if (static_cast<double>(bytes) > fastest_bytes_per_second * to_seconds(time)) return;
  const auto [found, added] = least_.try_emplace(bytes, time);
  if (!added) found->second = std::min(found->second, time);
}

std::optional<LinkCost> LinkFit::cost() const {
  if (least_.empty()) return std::nullopt;
  Sums sums;
  for (const auto& [bytes, time] : least_) {
    const auto x = static_cast<double>(bytes);
    const double y = to_seconds(time);
    const double weight = 1.0 / (y * y);
    sums.one += weight;
    sums.x += weight * x;
    sums.y += weight * y;
    sums.xx += weight * x * x;
    sums.xy += weight * x * y;
  }
  const double through_origin = sums.xy / sums.xx;
  const double spread = sums.one * sums.xx - sums.x * sums.x;
  if (least_.size() == 1 || !(spread > 0)) {
    return LinkCost{.start = Duration{0}, .seconds_per_byte = through_origin};
  }
  const double slope = (sums.one * sums.xy - sums.x * sums.y) / spread;
  const double start = (sums.y - slope * sums.x) / sums.one;
  if (start < 0) return LinkCost{.start = Duration{0}, .seconds_per_byte = through_origin};
  if (slope < 0) return LinkCost{.start = from_seconds(sums.y / sums.one), .seconds_per_byte = 0.0};
  return LinkCost{.start = from_seconds(start), .seconds_per_byte = slope};
}

}  // namespace stagger
