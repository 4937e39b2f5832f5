#include "ps/period_tuner.hpp"

#include <gtest/gtest.h>

#include "tests/support/tuned_run.hpp"

namespace stagger {
namespace {

TEST(PeriodTuner, keeps_a_period_that_hides_and_is_not_too_large) {
  TunedRun run(4);
  ASSERT_TRUE(run.hides(3.0));
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(run.evaluate(3.0));
  EXPECT_EQ(run.period(), 4U);
}

TEST(PeriodTuner, raises_a_period_that_was_too_small_three_times_in_a_row) {
  TunedRun run(2);
  EXPECT_FALSE(run.evaluate(5.0));
  EXPECT_FALSE(run.evaluate(5.0));
  ASSERT_TRUE(run.evaluate(5.0));
  EXPECT_GT(run.period(), 5U);
  EXPECT_TRUE(run.hides(5.0 * 1.12));
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(run.evaluate(5.0));
}

TEST(PeriodTuner, lowers_a_period_when_a_smaller_one_leaves_room) {
  TunedRun run(12);
  EXPECT_FALSE(run.evaluate(2.0));
  EXPECT_FALSE(run.evaluate(2.0));
  ASSERT_TRUE(run.evaluate(2.0));
  EXPECT_LT(run.period(), 12U);
  EXPECT_TRUE(run.hides(2.0 * 1.12));
}

TEST(PeriodTuner, forgets_a_wish_that_has_passed) {
  TunedRun run(4);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(run.evaluate(9.0));
    EXPECT_FALSE(run.evaluate(9.0));
    EXPECT_FALSE(run.evaluate(3.0));
  }
  EXPECT_EQ(run.period(), 4U);
}

TEST(PeriodTuner, does_not_count_a_rise_and_a_fall_together) {
  TunedRun run(6);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(run.evaluate(50.0));
    EXPECT_FALSE(run.evaluate(0.01));
  }
}

TEST(PeriodTuner, makes_the_best_of_a_link_that_no_period_hides) {
  TunedRun run(2);
  EXPECT_FALSE(run.evaluate(500.0));
  EXPECT_FALSE(run.evaluate(500.0));
  ASSERT_TRUE(run.evaluate(500.0));
  EXPECT_GT(run.period(), 32U);
  const std::uint32_t chosen = run.period();
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(run.evaluate(500.0));
  EXPECT_EQ(run.period(), chosen);
}

}  // namespace
}  // namespace stagger
