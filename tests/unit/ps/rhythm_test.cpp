#include "ps/rhythm.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr WorkerId quick{0};
constexpr WorkerId slow{1};

PsTime at(Duration since_origin) {
  return PsTime{since_origin};
}

BackwardStart start(std::uint64_t iteration, Duration when) {
  return {.iteration = Iteration(iteration), .at = at(when)};
}

TEST(RhythmFinder, knows_none_before_a_worker_has_reported_two_iterations) {
  RhythmFinder finder;
  EXPECT_FALSE(finder.next(at(1s)).has_value());
  finder.report(quick, start(1, 1s), at(1s));
  finder.report(quick, start(1, 1s), at(2s));  // it has not gone on
  EXPECT_FALSE(finder.next(at(2s)).has_value());
  finder.report(quick, start(5, 1400ms), at(2s));
  EXPECT_TRUE(finder.next(at(2s)).has_value());
}

TEST(RhythmFinder, goes_on_at_the_pace_of_the_reports_from_an_iteration_that_none_has_begun) {
  RhythmFinder finder;
  finder.report(quick, start(1, 1s), at(1s));
  finder.report(quick, start(11, 2s), at(2s));
  // 100 ms each: at 2.35 s the 14th is under way.
  EXPECT_EQ(
      finder.next(at(2350ms)),
      (Rhythm{.iteration = Iteration(16), .start = at(2500ms), .iteration_time = 100ms}));
}

TEST(RhythmFinder, takes_the_last_worker_and_the_longest_iteration) {
  RhythmFinder finder;
  finder.report(quick, start(1, 1s), at(1s));
  finder.report(quick, start(11, 2s), at(2s));
  finder.report(slow, start(1, 1050ms), at(2s));
  finder.report(slow, start(9, 2010ms), at(2s));  // 120 ms each
  EXPECT_EQ(
      finder.next(at(2s)),
      (Rhythm{
          .iteration = Iteration(13), .start = at(2010ms + 4 * 120ms), .iteration_time = 120ms}));
  finder.forget(slow);
  EXPECT_EQ(finder.next(at(2s))->start, at(2200ms));
}

TEST(RhythmFinder, is_as_much_later_as_it_was_lately_wrong) {
  RhythmFinder finder;
  finder.report(quick, start(1, 1s), at(1s));
  finder.report(quick, start(11, 2s), at(2s));      // 100 ms each
  finder.report(quick, start(21, 3040ms), at(3s));  // 40 ms late; 101 ms each, smoothed
  EXPECT_EQ(
      finder.next(at(3040ms)),
      (Rhythm{
          .iteration = Iteration(23),
          .start = at(3040ms + 2 * 101ms + 40ms),
          .iteration_time = 101ms}));
  finder.report(quick, start(31, 4050ms), at(4050ms));  // as foretold: less late by a tenth
  EXPECT_EQ(finder.next(at(4050ms))->start, at(4050ms + 2 * 101ms + 36ms));
  // Whatever happens, not by more than an iteration.
  finder.report(quick, start(32, 60s), at(60s));
  const Rhythm rhythm = finder.next(at(60s)).value();
  EXPECT_LE(rhythm.start, at(60s + 60s));
}

TEST(RhythmFinder, begins_anew_with_a_worker_that_goes_back) {
  RhythmFinder finder;
  finder.report(quick, start(10, 1s), at(1s));
  finder.report(quick, start(20, 2s), at(2s));
  finder.report(quick, start(3, 3s), at(3s));
  EXPECT_FALSE(finder.next(at(3s)).has_value());
  finder.report(quick, start(5, 4s), at(4s));
  EXPECT_EQ(finder.next(at(4s))->iteration_time, 500ms);
}

TEST(RhythmFinder, leaves_out_reports_that_cannot_be) {
  RhythmFinder finder;
  for (const Duration when :
       {Duration::min(), Duration::max(), Duration(-7200s), Duration(10000s)}) {
    finder.report(quick, start(1, when), at(1s));
    finder.report(quick, start(2, when), at(1s));
  }
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  finder.report(quick, start(huge - 1, 1s), at(1s));
  finder.report(quick, start(huge, 2s), at(2s));
  finder.report(quick, start(0, 2s), at(2s));
  EXPECT_FALSE(finder.next(at(2s)).has_value());
  // A million iterations in a second: whoever says so is left out.
  finder.report(quick, start(1, 1s), at(1s));
  finder.report(quick, start(2, 2s), at(2s));
  finder.report(slow, start(1, 1s), at(2s));
  finder.report(slow, start(1'000'000, 2s), at(2s));
  EXPECT_EQ(
      finder.next(at(2s)),
      (Rhythm{.iteration = Iteration(4), .start = at(4s), .iteration_time = 1s}));
  // Far ahead of all others: nothing can be said of them there.
  finder.report(slow, start(1'000'001, 3s), at(3s));
  EXPECT_EQ(finder.next(at(3s))->start, at(5s));
  EXPECT_EQ(finder.next(at(3s))->iteration, Iteration(1'000'003));
}

TEST(HeardRhythms, go_on_from_the_last_that_began_before_the_iteration) {
  HeardRhythms heard;
  EXPECT_FALSE(heard.at(Iteration(1)).has_value());
  heard.heard({.iteration = Iteration(10), .start = at(1s), .iteration_time = 100ms});
  heard.heard({.iteration = Iteration(20), .start = at(3s), .iteration_time = 150ms});
  EXPECT_FALSE(heard.at(Iteration(9)).has_value());
  EXPECT_EQ(heard.at(Iteration(10))->start, at(1s));
  EXPECT_EQ(heard.at(Iteration(19))->start, at(1900ms));
  EXPECT_EQ(heard.at(Iteration(22))->start, at(3300ms));
  EXPECT_EQ(heard.at(Iteration(22))->iteration_time, 150ms);
}

TEST(HeardRhythms, let_a_later_one_take_the_place_of_those_it_overtakes) {
  HeardRhythms heard;
  heard.heard({.iteration = Iteration(10), .start = at(1s), .iteration_time = 100ms});
  heard.heard({.iteration = Iteration(20), .start = at(9s), .iteration_time = 100ms});
  heard.heard({.iteration = Iteration(15), .start = at(2s), .iteration_time = 100ms});
  EXPECT_EQ(heard.at(Iteration(20))->start, at(2500ms));
  EXPECT_EQ(heard.at(Iteration(14))->start, at(1400ms));
}

TEST(HeardRhythms, say_nothing_of_an_iteration_that_is_too_far_on) {
  HeardRhythms heard;
  heard.heard({.iteration = Iteration(1), .start = at(1s), .iteration_time = rhythm_time_max});
  EXPECT_TRUE(heard.at(Iteration(60'000)).has_value());
  EXPECT_FALSE(heard.at(Iteration(100'000)).has_value());
  EXPECT_FALSE(heard.at(Iteration(std::numeric_limits<std::uint64_t>::max())).has_value());
}

TEST(SlotBegin, is_the_common_one_unless_that_is_too_far) {
  const TimePoint local{Duration{5s}};
  EXPECT_EQ(slot_begin(local, local + 10ms, 10ms), local + 10ms);
  EXPECT_EQ(slot_begin(local, local - 1s, 10ms), local - 1s);
  EXPECT_EQ(slot_begin(local, local + 10ms + 1ns, 10ms), local);
  EXPECT_EQ(slot_begin(local, time_point_max, 10ms), local);
}

}  // namespace
}  // namespace stagger
