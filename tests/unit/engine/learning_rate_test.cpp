#include "engine/learning_rate.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(LearningRate, stays_where_it_is_when_constant) {
  const LearningRateSchedule schedule{.base = 0.2};
  for (const std::uint64_t iteration : {1U, 2U, 1000000U}) {
    EXPECT_EQ(schedule.at(iteration), 0.2);
  }
}

TEST(LearningRate, warms_up_linearly_and_reaches_the_base) {
  for (const LearningRateKind kind :
       {LearningRateKind::constant, LearningRateKind::step, LearningRateKind::cosine}) {
    const LearningRateSchedule schedule{
        .kind = kind,
        .base = 1.0,
        .warmup_iterations = 4,
        .total_iterations = 100,
        .step_iterations = 10};
    EXPECT_DOUBLE_EQ(schedule.at(1), 0.25);
    EXPECT_DOUBLE_EQ(schedule.at(2), 0.5);
    EXPECT_DOUBLE_EQ(schedule.at(3), 0.75);
    EXPECT_DOUBLE_EQ(schedule.at(4), 1.0);
  }
}

TEST(LearningRate, falls_in_steps_counted_from_the_end_of_warm_up) {
  const LearningRateSchedule schedule{
      .kind = LearningRateKind::step,
      .base = 1.0,
      .warmup_iterations = 5,
      .step_iterations = 10,
      .step_factor = 0.1};
  EXPECT_DOUBLE_EQ(schedule.at(6), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(15), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(16), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(25), 0.1);
  EXPECT_NEAR(schedule.at(26), 0.01, 1e-15);
}

TEST(LearningRate, falls_along_a_cosine_to_its_floor_and_stays_there) {
  const LearningRateSchedule schedule{
      .kind = LearningRateKind::cosine,
      .base = 2.0,
      .warmup_iterations = 10,
      .total_iterations = 110,
      .floor = 0.1};
  EXPECT_NEAR(schedule.at(60), 2.0 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.2, 1e-12);
  EXPECT_NEAR(schedule.at(1000), 0.2, 1e-12);
  for (std::uint64_t iteration = 11; iteration <= 110; ++iteration) {
    EXPECT_LT(schedule.at(iteration), schedule.at(iteration - 1));
  }
}

TEST(LearningRate, is_the_base_where_a_cosine_has_no_room_after_warm_up) {
  const LearningRateSchedule schedule{
      .kind = LearningRateKind::cosine,
      .base = 1.0,
      .warmup_iterations = 10,
      .total_iterations = 10};
  EXPECT_EQ(schedule.at(11), 1.0);
}

TEST(LearningRateKindNames, are_read_back) {
  for (const LearningRateKind kind :
       {LearningRateKind::constant, LearningRateKind::step, LearningRateKind::cosine}) {
    EXPECT_EQ(parse_learning_rate_kind(to_string(kind)), kind);
  }
  EXPECT_FALSE(parse_learning_rate_kind("cosinus"));
  EXPECT_FALSE(parse_learning_rate_kind(""));
}

TEST(LearningRateDeathTest, refuses_iteration_zero) {
  EXPECT_DEATH(static_cast<void>(LearningRateSchedule{}.at(0)), "CHECK failed");
}

}  // namespace
}  // namespace stagger
