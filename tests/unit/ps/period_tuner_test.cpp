#include "ps/period_tuner.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// The proposal that as many equal samples lead to as a median takes, if any.
std::optional<std::uint32_t> settle(PeriodTuner& tuner, Duration busy, Duration compute = 10ms) {
  std::optional<std::uint32_t> proposal;
  for (std::size_t sample = 0; sample < PeriodTuner::Options().samples; ++sample) {
    EXPECT_FALSE(proposal) << "before the last sample";
    proposal = tuner.measured(busy, compute);
  }
  return proposal;
}

TEST(PeriodTuner, keeps_a_period_that_fits) {
  PeriodTuner tuner(3);
  EXPECT_FALSE(settle(tuner, 25ms));  // 0.83 with T=3
  EXPECT_FALSE(settle(tuner, 28ms));  // 0.93
  EXPECT_FALSE(settle(tuner, 16ms));  // 0.8 with T=2
  EXPECT_EQ(tuner.period(), 3U);
}

TEST(PeriodTuner, raises_a_period_on_a_link_that_is_nearly_full) {
  PeriodTuner tuner(3);
  EXPECT_EQ(settle(tuner, 29ms), 4U);  // 0.97 with T=3, 0.73 with T=4
  EXPECT_EQ(tuner.period(), 4U);
  EXPECT_EQ(settle(tuner, 100ms), 12U);
}

TEST(PeriodTuner, lowers_a_period_when_a_smaller_one_leaves_room) {
  PeriodTuner tuner(3);
  EXPECT_EQ(settle(tuner, 14ms), 2U);  // 0.7 with T=2
  EXPECT_EQ(settle(tuner, 0ms), 1U);
  EXPECT_FALSE(settle(tuner, 0ms));
}

TEST(PeriodTuner, is_not_moved_by_an_outlier) {
  PeriodTuner tuner(3);
  EXPECT_FALSE(settle(tuner, 25ms));
  EXPECT_FALSE(tuner.measured(1s, 10ms));
  EXPECT_FALSE(tuner.measured(1s, 10ms));
  EXPECT_EQ(tuner.measured(1s, 10ms), 64U);  // three of five are none
}

TEST(PeriodTuner, stays_within_its_bounds_whatever_is_measured) {
  PeriodTuner tuner(3);
  EXPECT_EQ(settle(tuner, 3600s, 0ms), 64U);
  EXPECT_FALSE(settle(tuner, 3600s, 0ms));
  PeriodTuner other(3);
  EXPECT_EQ(settle(other, 0ms, 0ms), 1U);
  PeriodTuner beyond(70);
  EXPECT_FALSE(settle(beyond, 100s));
}

}  // namespace
}  // namespace stagger
