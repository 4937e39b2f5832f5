#include "ps/push_times.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr TimePoint start{};

RoundId round_of(std::uint32_t group, std::uint64_t iteration) {
  return {.group = GroupId(group), .iteration = Iteration(iteration)};
}

void expect_one(const QuantileSketch& sketch, double seconds) {
  EXPECT_EQ(sketch.count(), 1U);
  EXPECT_NEAR(sketch.quantile(0.5), seconds, seconds * QuantileSketch::relative_error);
}

TEST(PushTimes, last_until_the_acknowledgement_from_the_first_byte_and_from_ready) {
  PushTimes times;
  times.ready(round_of(2, 1), start);
  times.began(round_of(2, 1), start + 30ms);
  times.received(round_of(2, 1), start + 40ms);
  expect_one(times.push(), 0.010);
  expect_one(times.ready_to_done(), 0.040);
}

TEST(PushTimes, of_groups_under_way_together_are_kept_apart) {
  PushTimes times;
  times.ready(round_of(0, 1), start);
  times.ready(round_of(1, 1), start + 1ms);
  times.began(round_of(1, 1), start + 2ms);
  times.began(round_of(0, 1), start + 3ms);
  times.received(round_of(1, 1), start + 12ms);
  expect_one(times.push(), 0.010);
  times.received(round_of(0, 1), start + 103ms);
  EXPECT_EQ(times.push().count(), 2U);
  EXPECT_NEAR(times.push().quantile(1.0), 0.100, 0.100 * QuantileSketch::relative_error);
}

TEST(PushTimes, are_not_measured_of_rounds_that_were_never_ready) {
  PushTimes times;
  times.began(round_of(0, 1), start);
  times.received(round_of(0, 1), start + 1ms);
  EXPECT_EQ(times.push().count(), 0U);
}

TEST(PushTimes, take_no_acknowledgement_that_nobody_waits_for) {
  PushTimes times;
  times.ready(round_of(1, 5), start);
  times.received(round_of(1, 5), start + 1ms);  // nothing was sent yet
  times.began(round_of(1, 5), start + 2ms);
  times.received(round_of(1, 4), start + 3ms);               // a round that is over
  times.received(round_of(1, 6), start + 3ms);               // one that has not begun
  times.received(round_of(4'000'000'000U, 5), start + 3ms);  // no such group
  EXPECT_EQ(times.push().count(), 0U);
  times.received(round_of(1, 5), start + 12ms);
  times.received(round_of(1, 5), start + 20ms);  // twice
  expect_one(times.push(), 0.010);
}

TEST(PushTimes, of_a_push_that_was_never_acknowledged_give_way_to_the_next) {
  PushTimes times;
  times.ready(round_of(0, 1), start);
  times.began(round_of(0, 1), start);
  times.ready(round_of(0, 4), start + 50ms);
  times.received(round_of(0, 1), start + 60ms);
  EXPECT_EQ(times.push().count(), 0U);
  times.began(round_of(0, 4), start + 70ms);
  times.received(round_of(0, 4), start + 80ms);
  expect_one(times.ready_to_done(), 0.030);
}

}  // namespace
}  // namespace stagger
