#include "ps/clock_offset.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr TimePoint origin{Duration{1s}};

/// An exchange that begins at `asked`, with this offset and these ways.
ClockSample sample(TimePoint asked, Duration offset, Duration there, Duration back) {
  const TimePoint heard = asked + there;
  const TimePoint answered = heard + 5us;
  return {
      .asked = asked,
      .heard = as_ps_time(heard + offset),
      .answered = as_ps_time(answered + offset),
      .received = answered + back};
}

void expect_holds(const ClockOffset& clock, TimePoint own, Duration offset) {
  const auto reading = clock.at(own);
  ASSERT_TRUE(reading.has_value());
  EXPECT_LE(std::chrono::abs(reading->offset - offset), reading->uncertainty);
}

TEST(ClockOffset, is_unknown_before_the_first_sample) {
  const ClockOffset clock;
  EXPECT_FALSE(clock.at(origin).has_value());
  EXPECT_FALSE(clock.ps_time(origin).has_value());
  EXPECT_FALSE(clock.own_time(as_ps_time(origin)).has_value());
}

TEST(ClockOffset, is_exact_where_both_ways_take_equally_long) {
  ClockOffset clock;
  ASSERT_TRUE(clock.add(sample(origin, -3s, 100us, 100us)));
  const auto reading = clock.at(origin + 100us);
  ASSERT_TRUE(reading.has_value());
  EXPECT_EQ(reading->offset, -3s);
  EXPECT_GE(reading->uncertainty, 100us);
  EXPECT_LT(reading->uncertainty, 101us);
}

TEST(ClockOffset, is_half_the_difference_of_the_ways_wrong_and_says_so) {
  ClockOffset clock;
  ASSERT_TRUE(clock.add(sample(origin, 2s, 900us, 100us)));
  EXPECT_EQ(clock.at(origin)->offset, 2s + 400us);
  expect_holds(clock, origin, 2s);
}

TEST(ClockOffset, goes_by_the_shortest_round_trip_of_a_window) {
  ClockOffset clock;
  for (int i = 0; i < 64; ++i) {
    const Duration there = i == 20 ? 10us : 5ms;
    ASSERT_TRUE(clock.add(sample(origin + i * 10ms, 7s, there, 10us)));
  }
  const auto reading = clock.at(origin + 640ms);
  EXPECT_LT(reading->uncertainty, 150us);  // the skew may have moved it since; others know 2.5 ms
  EXPECT_LE(std::chrono::abs(reading->offset - 7s), reading->uncertainty);
}

TEST(ClockOffset, grows_less_certain_with_time) {
  ClockOffset clock;
  ASSERT_TRUE(clock.add(sample(origin, 1s, 50us, 50us)));
  const Duration now = clock.at(origin)->uncertainty;
  const Duration later = clock.at(origin + 10s)->uncertainty;
  EXPECT_GE(later - now, from_seconds(10 * ClockOffset::skew_max) - 50ns);
}

TEST(ClockOffset, finds_the_skew_and_stays_certain_by_it) {
  constexpr double skew = 60e-6;
  ClockOffset clock;
  for (int i = 0; i < 64; ++i) {
    const TimePoint asked = origin + i * 1s;
    const Duration offset = 5s + from_seconds(skew * i);
    ASSERT_TRUE(clock.add(sample(asked, offset, 100us, 100us)));
  }
  EXPECT_NEAR(clock.skew(), skew, 8e-6);
  const auto reading = clock.at(origin + 70s);
  EXPECT_LT(std::chrono::abs(reading->offset - (5s + from_seconds(skew * 70))), 100us);
  EXPECT_LT(reading->uncertainty, 200us);
}

TEST(ClockOffset, refuses_samples_that_cannot_be) {
  ClockOffset clock;
  const ClockSample good = sample(origin, 1s, 50us, 50us);
  ClockSample bad = good;
  bad.received = bad.asked - 1ns;
  EXPECT_FALSE(clock.add(bad));
  bad = good;
  bad.answered = bad.heard - 1ns;
  EXPECT_FALSE(clock.add(bad));
  bad = good;
  bad.answered = bad.heard + 1s;  // the answer took longer than question and answer together
  EXPECT_FALSE(clock.add(bad));
  for (const Duration far : {Duration::max(), Duration::min(), Duration::max() / 4}) {
    bad = good;
    bad.heard = bad.answered = PsTime{far};
    EXPECT_FALSE(clock.add(bad));
    bad = {.asked = TimePoint{far}, .heard = {}, .answered = {}, .received = TimePoint{far}};
    EXPECT_FALSE(clock.add(bad));
  }
  EXPECT_FALSE(clock.at(origin).has_value());
  ASSERT_TRUE(clock.add(good));
  EXPECT_FALSE(clock.add(sample(origin - 10ms, 1s, 50us, 50us)));  // older than the last
}

TEST(ClockOffset, begins_anew_when_a_sample_contradicts_what_it_knows) {
  ClockOffset clock;
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(clock.add(sample(origin + i * 1ms, 1s, 50us, 50us)));
  // One lie, and the truth again although its round trip is longer.
  ASSERT_TRUE(clock.add(sample(origin + 30ms, 100s, 0us, 0us)));
  expect_holds(clock, origin + 30ms, 100s);
  ASSERT_TRUE(clock.add(sample(origin + 40ms, 1s, 70us, 50us)));
  expect_holds(clock, origin + 40ms, 1s);
}

TEST(ClockOffset, converts_there_and_back) {
  ClockOffset clock;
  for (int i = 0; i < 40; ++i) {
    const Duration offset = -3600s + from_seconds(-80e-6 * i);
    ASSERT_TRUE(clock.add(sample(origin + i * 1s, offset, 80us, 60us)));
  }
  for (const Duration wait : {0s, 1s, 39s, 100s}) {
    const TimePoint own = origin + wait;
    const auto there = clock.ps_time(own);
    ASSERT_TRUE(there.has_value());
    const auto back = clock.own_time(*there);
    ASSERT_TRUE(back.has_value());
    EXPECT_LE(std::chrono::abs(*back - own), clock.at(own)->uncertainty);
  }
}

TEST(ClockOffset, answers_for_any_time_whatsoever) {
  ClockOffset clock;
  constexpr Duration far{std::int64_t{1} << 60};
  const TimePoint own{far};
  ASSERT_TRUE(
      clock.add({.asked = own, .heard = PsTime{-far}, .answered = PsTime{-far}, .received = own}));
  EXPECT_EQ(clock.at(own)->offset, -2 * far);
  for (const TimePoint time : {TimePoint::min(), TimePoint{}, TimePoint::max()}) {
    EXPECT_GT(clock.at(time)->uncertainty, Duration{0});
    EXPECT_TRUE(clock.ps_time(time).has_value());
    EXPECT_TRUE(clock.own_time(as_ps_time(time)).has_value());
  }
}

}  // namespace
}  // namespace stagger
