#include "ps/agreement.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

const std::vector<WorkerId> three{WorkerId(0), WorkerId(1), WorkerId(2)};

TEST(Agreement, is_one_past_the_largest_promise) {
  Agreement agreement;
  const auto number = agreement.begin(three);
  EXPECT_TRUE(agreement.under_way());
  agreement.promise(number, WorkerId(0), Iteration(7));
  agreement.promise(number, WorkerId(2), Iteration(9));
  EXPECT_FALSE(agreement.complete());
  EXPECT_EQ(agreement.awaited(), std::vector{WorkerId(1)});
  agreement.promise(number, WorkerId(1), Iteration(8));
  ASSERT_TRUE(agreement.complete());
  EXPECT_EQ(agreement.finish(), Iteration(10));
  EXPECT_FALSE(agreement.under_way());
  EXPECT_FALSE(agreement.complete());
}

TEST(Agreement, needs_nobody_who_was_dropped_in_the_middle) {
  Agreement agreement;
  const auto number = agreement.begin(three);
  agreement.promise(number, WorkerId(0), Iteration(3));
  agreement.drop(WorkerId(1));
  agreement.promise(number, WorkerId(2), Iteration(4));
  ASSERT_TRUE(agreement.complete());
  EXPECT_EQ(agreement.finish(), Iteration(5));
}

TEST(Agreement, keeps_the_promise_of_a_worker_that_dies_after_it) {
  Agreement agreement;
  const auto number = agreement.begin(three);
  agreement.promise(number, WorkerId(0), Iteration(30));
  agreement.drop(WorkerId(0));
  agreement.promise(number, WorkerId(1), Iteration(3));
  agreement.promise(number, WorkerId(2), Iteration(4));
  EXPECT_EQ(agreement.finish(), Iteration(31));
}

TEST(Agreement, is_complete_when_all_were_dropped) {
  Agreement agreement;
  agreement.begin(three);
  agreement.drop_all();
  ASSERT_TRUE(agreement.complete());
  EXPECT_EQ(agreement.finish(), Iteration(1));
}

TEST(Agreement, ignores_promises_that_are_stale_foreign_or_repeated) {
  Agreement agreement;
  agreement.promise(1, WorkerId(0), Iteration(99));  // none under way
  const auto first = agreement.begin({WorkerId(0)});
  agreement.promise(first, WorkerId(0), Iteration(1));
  agreement.finish();

  const auto second = agreement.begin({WorkerId(0), WorkerId(1)});
  EXPECT_NE(first, second);
  agreement.promise(first, WorkerId(0), Iteration(50));
  agreement.promise(second, WorkerId(7), Iteration(60));
  agreement.promise(second, WorkerId(0), Iteration(5));
  agreement.promise(second, WorkerId(0), Iteration(70));
  EXPECT_FALSE(agreement.complete());
  agreement.promise(second, WorkerId(1), Iteration(4));
  EXPECT_EQ(agreement.finish(), Iteration(6));
}

TEST(AgreementDeathTest, is_one_at_a_time_and_ends_complete) {
  Agreement agreement;
  agreement.begin(three);
  EXPECT_DEATH(agreement.begin(three), "two agreements");
  EXPECT_DEATH(agreement.finish(), "before all have promised");
}

TEST(EarliestSwitch, waits_a_period_after_the_last_one) {
  EXPECT_EQ(earliest_switch(Iteration(10), Iteration(1), 3), Iteration(10));
  EXPECT_EQ(earliest_switch(Iteration(10), Iteration(8), 5), Iteration(13));
  EXPECT_EQ(earliest_switch(Iteration(10), Iteration(7), 3), Iteration(10));
}

}  // namespace
}  // namespace stagger
