#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "ps/link_cost.hpp"

namespace stagger {

/// The link's cost from how long some sendings took. Pure.
///
/// What disturbs a sending makes it longer, hardly ever shorter: of each size the least time
/// counts. Through these goes the line a + b*bytes, a and b not negative, with the least sum of
/// squared relative errors: a small size tells a, a large one b, and neither is drowned by the
/// other.
class LinkFit {
 public:
  /// Ignored: no bytes, no time, more than an hour, more than 10^13 bit/s.
  void add(std::uint64_t bytes, Duration time);

  /// None before the first sample; a = 0 while there is one size only.
  std::optional<LinkCost> cost() const;

 private:
  std::map<std::uint64_t, Duration> least_;  ///< by bytes
};

}  // namespace stagger
