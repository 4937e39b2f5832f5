#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ps/clock_offset.hpp"

namespace stagger {
namespace {

std::int64_t pick(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange<std::int64_t>(low, high + 1);
}

/// Two clocks of different origins and rates, as an all-knowing observer sees them.
struct TwoClocks {
  Duration offset = Duration{pick(-1'000'000'000'000, 1'000'000'000'000)};
  double skew = static_cast<double>(pick(-100'000, 100'000)) * 1e-9;

  PsTime ps(TimePoint own) const {
    const double gained = skew * static_cast<double>(own.time_since_epoch().count());
    return as_ps_time(own + offset + Duration{static_cast<std::int64_t>(std::floor(gained))});
  }

  Duration between(TimePoint own) const {
    return ps(own).time_since_epoch() - own.time_since_epoch();
  }
};

/// Ways of any length, the one or the other longer.
ClockSample pick_sample(const TwoClocks& clocks, TimePoint asked) {
  const TimePoint heard = asked + Duration{pick(20'000, 3'000'000)};
  const TimePoint answered = heard + Duration{pick(0, 200'000)};
  const TimePoint received = answered + Duration{pick(20'000, 3'000'000)};
  return {
      .asked = asked,
      .heard = clocks.ps(heard),
      .answered = clocks.ps(answered),
      .received = received};
}

RC_GTEST_PROP(ClockOffsetProperty, the_true_offset_is_always_within_the_uncertainty, ()) {
  const TwoClocks clocks;
  ClockOffset clock;
  TimePoint now{Duration{pick(0, 1'000'000'000'000)}};
  const auto samples = pick(1, 150);
  for (std::int64_t i = 0; i < samples; ++i) {
    const ClockSample sample = pick_sample(clocks, now);
    RC_ASSERT(clock.add(sample));
    // Right after the sample, and before the next; and a while into the past.
    for (const Duration wait : {Duration{0}, Duration{pick(0, 2'000'000'000)}, Duration{-1s}}) {
      const TimePoint own = sample.received + wait;
      const auto reading = clock.at(own);
      RC_ASSERT(reading.has_value());
      RC_ASSERT(std::chrono::abs(reading->offset - clocks.between(own)) <= reading->uncertainty);
      const auto there = clock.own_time(clocks.ps(own));
      RC_ASSERT(there.has_value());
      RC_ASSERT(std::chrono::abs(*there - own) <= 2 * reading->uncertainty + 10ns);
    }
    now = sample.received + Duration{pick(0, 2'000'000'000)};
  }
}

RC_GTEST_PROP(ClockOffsetProperty, no_samples_whatsoever_break_it, ()) {
  const auto any = [] {
    // Small, large and the largest numbers.
    return static_cast<std::int64_t>(
        *rc::gen::arbitrary<std::uint64_t>() >> static_cast<std::uint64_t>(pick(0, 63)));
  };
  ClockOffset clock;
  bool known = false;
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::int64_t asked = any();
    const std::int64_t heard = any();
    const bool near = pick(0, 1) == 1;
    known |= clock.add(
        {.asked = TimePoint{Duration{asked}},
         .heard = PsTime{Duration{heard}},
         .answered = PsTime{Duration{near ? heard : any()}},
         .received = TimePoint{Duration{near ? asked : any()}}});
    const auto reading = clock.at(TimePoint{Duration{any()}});
    RC_ASSERT(reading.has_value() == known);
    if (reading) RC_ASSERT(reading->uncertainty > Duration{0});
    RC_ASSERT(std::isfinite(clock.skew()));
    RC_ASSERT(std::abs(clock.skew()) <= ClockOffset::skew_max);
    RC_ASSERT(clock.own_time(PsTime{Duration{any()}}).has_value() == known);
  }
}

}  // namespace
}  // namespace stagger
