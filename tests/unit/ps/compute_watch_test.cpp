#include "ps/compute_watch.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr WorkerId one{0};
constexpr WorkerId two{1};
constexpr WorkerId three{2};

ComputeWatch watch() {
  return ComputeWatch({{one, 10ms}, {two, 10ms}, {three, 20ms}});
}

TEST(ComputeWatch, compares_iterations_since_the_last_look_with_the_profile) {
  ComputeWatch watched = watch();
  watched.heard(one, Iteration(10), 500ms);
  EXPECT_FALSE(watched.fresh({one}));
  EXPECT_FALSE(watched.take());
  watched.heard(one, Iteration(20), 650ms);
  EXPECT_TRUE(watched.fresh({one}));
  EXPECT_FALSE(watched.fresh({one, two}));
  EXPECT_DOUBLE_EQ(watched.take().value(), 1.5);
  EXPECT_FALSE(watched.fresh({one}));
  watched.heard(one, Iteration(22), 690ms);
  EXPECT_DOUBLE_EQ(watched.take().value(), 2.0);
}

TEST(ComputeWatch, takes_the_lower_median_of_the_workers) {
  ComputeWatch watched = watch();
  for (const WorkerId worker : {one, two, three})
    watched.heard(worker, Iteration(1), 0ms);
  watched.heard(one, Iteration(11), 110ms);
  watched.heard(two, Iteration(11), 900ms);
  watched.heard(three, Iteration(11), 260ms);
  EXPECT_DOUBLE_EQ(watched.take().value(), 1.3);
}

TEST(ComputeWatch, begins_anew_with_a_worker_that_has_come_back) {
  ComputeWatch watched = watch();
  watched.heard(one, Iteration(10), 500ms);
  watched.heard(one, Iteration(0), 0ms);
  watched.heard(one, Iteration(40), 20ms);
  EXPECT_FALSE(watched.take());
  watched.heard(one, Iteration(42), 40ms);
  EXPECT_DOUBLE_EQ(watched.take().value(), 1.0);
}

TEST(ComputeWatch, knows_nothing_of_workers_whose_profile_takes_no_time) {
  ComputeWatch watched({{one, 0ms}});
  watched.heard(one, Iteration(1), 0ms);
  watched.heard(one, Iteration(5), 40ms);
  EXPECT_FALSE(watched.take());
}

}  // namespace
}  // namespace stagger
