#include "net/real/pacer.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr TimePoint at(Duration moment) {
  return TimePoint(moment);
}

TEST(Pacer, ends_work_after_its_nominal_time) {
  Pacer pacer;
  EXPECT_EQ(pacer.end_of(at(10ms), 5ms, at(11ms)), at(15ms));
}

TEST(Pacer, makes_up_for_a_late_awakening_in_the_work_that_follows) {
  Pacer pacer;
  pacer.end_of(at(0ms), 5ms, at(1ms));
  pacer.ended(at(7ms));  // 2 ms late
  EXPECT_EQ(pacer.end_of(at(7ms), 5ms, at(7ms)), at(10ms));
  pacer.ended(at(10ms));
  EXPECT_EQ(pacer.end_of(at(10ms), 5ms, at(10ms)), at(15ms));
}

TEST(Pacer, spreads_a_delay_over_work_that_is_shorter_than_it) {
  Pacer pacer;
  pacer.end_of(at(0ms), 1ms, at(0ms));
  pacer.ended(at(6ms));  // 5 ms late
  EXPECT_LE(pacer.end_of(at(6ms), 2ms, at(6ms)), at(6ms));
  pacer.ended(at(6ms));
  EXPECT_LE(pacer.end_of(at(6ms), 2ms, at(6ms)), at(6ms));
  pacer.ended(at(6ms));
  EXPECT_EQ(pacer.end_of(at(6ms), 2ms, at(6ms)), at(7ms));
}

TEST(Pacer, owes_nothing_for_work_that_takes_longer_by_itself) {
  Pacer pacer;
  EXPECT_LE(pacer.end_of(at(0ms), 1ms, at(4ms)), at(4ms));
  pacer.ended(at(4ms));
  EXPECT_EQ(pacer.end_of(at(4ms), 5ms, at(4ms)), at(9ms));
}

TEST(Pacer, forgets_a_delay_when_compute_stood_still_for_something_else) {
  Pacer pacer;
  pacer.end_of(at(0ms), 1ms, at(0ms));
  pacer.ended(at(3ms));
  const TimePoint later = at(3ms) + Pacer::gap_max + 1ns;
  EXPECT_EQ(pacer.end_of(later, 5ms, later), later + 5ms);
}

TEST(Pacer, catches_up_on_no_more_than_its_limit_after_a_process_was_stopped) {
  Pacer pacer;
  pacer.end_of(at(0ms), 1ms, at(0ms));
  pacer.ended(at(10s));
  EXPECT_EQ(pacer.end_of(at(10s), 200ms, at(10s)), at(10s) + 200ms - Pacer::debt_max);
}

TEST(Pacer, lets_work_that_was_hurried_owe_nothing) {
  Pacer pacer;
  pacer.end_of(at(0ms), 1s, at(0ms));
  pacer.ended(at(2ms));
  EXPECT_EQ(pacer.end_of(at(2ms), 5ms, at(2ms)), at(7ms));
}

}  // namespace
}  // namespace stagger
