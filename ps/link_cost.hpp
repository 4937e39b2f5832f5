#pragma once

#include <cstdint>

#include "net/error.hpp"
#include "net/time.hpp"

/// What it costs to send: m bytes occupy the link for start + m * seconds_per_byte. Pure.
namespace stagger {

struct LinkCost {
  Duration start{0};              ///< a: before the first byte (latency, overhead)
  double seconds_per_byte = 0.0;  ///< b

  /// Whole nanoseconds, as a double: exact for a hundred days, and what is longer never wraps.
  double need_ns(std::uint64_t bytes) const;

  bool operator==(const LinkCost&) const = default;
};

/// Fails with refused unless the rate is a finite number above 0 and the start is not negative.
Result<LinkCost> make_link_cost(double rate_bits_per_second, Duration start);

/// The inverse of make_link_cost. REQUIRES a cost per byte above 0.
double rate_bits_per_second(const LinkCost& link);

/// One PS link on which `workers` send one after another: K*a and K*b. REQUIRES workers >= 1.
LinkCost shared_by(const LinkCost& link, std::uint32_t workers);

/// A Duration of so many nanoseconds; 0 for less and for NaN, about three years for more.
Duration saturated(double nanoseconds);

}  // namespace stagger
