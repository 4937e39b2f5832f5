#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ps/link_fit.hpp"

namespace stagger {
namespace {

constexpr std::uint64_t sizes[]{4096, 16384, 65536, 262144, 1048576};

/// A link from 100 kbit/s to 100 Gbit/s, with a start from nothing to 10 ms.
LinkCost pick_link() {
  const double rate = std::pow(10.0, 5.0 + 1e-3 * *rc::gen::inRange(0, 6001));
  return {.start = *rc::gen::inRange(0, 10'000) * 1us, .seconds_per_byte = 8.0 / rate};
}

/// Of each size one sample is late by at most 2 %, the others by anything.
RC_GTEST_PROP(LinkFitProperty, recovers_a_link_whose_samples_are_late, ()) {
  const LinkCost link = pick_link();
  LinkFit fit;
  for (const std::uint64_t bytes : sizes) {
    const double true_ns = link.need_ns(bytes);
    for (int repeat = 0; repeat < 3; ++repeat)
      fit.add(bytes, saturated(true_ns * (1.0 + 1e-3 * *rc::gen::inRange(0, 100'000))));
    fit.add(bytes, saturated(true_ns * (1.0 + 1e-3 * *rc::gen::inRange(0, 21))));
    fit.add(bytes, Duration{0});
  }
  const auto cost = fit.cost();
  RC_ASSERT(cost.has_value());
  for (const std::uint64_t bytes : sizes) {
    // The true line's squared relative errors sum to 5 * 0.02^2 at most, the best line's to no
    // more.
    const double ratio = cost->need_ns(bytes) / link.need_ns(bytes);
    RC_ASSERT(ratio > 0.94);
    RC_ASSERT(ratio < 1.08);
  }
  // Where bytes take most of the time, the rate is known as well.
  if (static_cast<double>(link.start.count()) < 0.1 * link.need_ns(sizes[4])) {
    RC_ASSERT(std::abs(cost->seconds_per_byte / link.seconds_per_byte - 1.0) < 0.15);
  }
}

RC_GTEST_PROP(
    LinkFitProperty,
    is_never_negative_whatever_is_measured,
    (const std::vector<std::pair<std::uint32_t, std::int64_t>>& samples)) {
  LinkFit fit;
  for (const auto& [bytes, nanoseconds] : samples)
    fit.add(bytes, Duration{nanoseconds});
  const auto cost = fit.cost();
  if (!cost) return;
  RC_ASSERT(cost->start >= Duration{0});
  RC_ASSERT(cost->seconds_per_byte >= 0.0);
  RC_ASSERT(std::isfinite(cost->seconds_per_byte));
}

}  // namespace
}  // namespace stagger
