#include "ps/link_cost.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr double bits_per_byte = 8.0;

}  // namespace

double LinkCost::need_ns(std::uint64_t bytes) const {
  return static_cast<double>(start.count()) +
         std::round(static_cast<double>(bytes) * seconds_per_byte * 1e9);
}

double rate_bits_per_second(const LinkCost& link) {
  CHECK(link.seconds_per_byte > 0, "a link without a rate");
  return bits_per_byte / link.seconds_per_byte;
}

Result<LinkCost> make_link_cost(double rate_bits_per_second, Duration start) {
  if (!std::isfinite(rate_bits_per_second) || !(rate_bits_per_second > 0)) {
    return Error{
        .code = Errc::refused,
        .detail = fmt::format(
            "link.rate_bits_per_second = {:g}: must be a finite number above 0",
            rate_bits_per_second)};
  }
  if (start < Duration{0}) {
    return Error{
        .code = Errc::refused,
        .detail =
            fmt::format("link.start_us = {:g}: must not be negative", to_microseconds(start))};
  }
  return LinkCost{.start = start, .seconds_per_byte = bits_per_byte / rate_bits_per_second};
}

LinkCost shared_by(const LinkCost& link, std::uint32_t workers) {
  CHECK_LE(1U, workers);
  return {
      .start = saturated(static_cast<double>(link.start.count()) * workers),
      .seconds_per_byte = link.seconds_per_byte * workers};
}

Duration saturated(double nanoseconds) {
  constexpr double longest = 1e17;
  if (!(nanoseconds > 0)) return Duration{0};
  return Duration{static_cast<Duration::rep>(std::min(nanoseconds, longest))};
}

}  // namespace stagger
