#include "ps/link_watch.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr std::size_t chunk = 100'000;

RoundId round_of(std::uint64_t iteration) {
  return {.group = GroupId(0), .iteration = Iteration(iteration)};
}

class LinkWatchTest : public testing::Test {
 protected:
  /// A push of so many chunks, each of which takes `each`.
  void push(std::uint32_t rank, int chunks, Duration each, bool waited = false) {
    const WorkerId worker(rank);
    const RoundId round = round_of(++iteration_);
    watch_.began(worker, round, waited, now_);
    for (int i = 0; i < chunks; ++i) {
      now_ += each;
      watch_.received(worker, round, chunk, now_);
    }
    watch_.ended(worker, round);
    now_ += 1ms;
  }

  LinkWatch watch_;
  TimePoint now_{1s};
  std::uint64_t iteration_ = 0;
};

TEST_F(LinkWatchTest, tells_nothing_before_it_has_seen_enough) {
  push(0, 7, 1ms);
  EXPECT_FALSE(watch_.seconds_per_byte());
  push(0, 1, 1ms);
  ASSERT_TRUE(watch_.seconds_per_byte());
  EXPECT_NEAR(*watch_.seconds_per_byte(), 1e-8, 1e-12);
}

TEST_F(LinkWatchTest, is_not_moved_by_outliers_of_either_kind) {
  push(0, 20, 1ms);
  push(0, 5, 1us);
  push(0, 5, 1s);
  EXPECT_NEAR(*watch_.seconds_per_byte(), 1e-8, 1e-12);
}

TEST_F(LinkWatchTest, follows_a_link_that_has_changed) {
  push(0, 40, 1ms);
  push(0, 32, 3ms);
  EXPECT_NEAR(*watch_.seconds_per_byte(), 3e-8, 1e-12);
}

TEST_F(LinkWatchTest, goes_by_the_slowest_worker) {
  push(0, 20, 1ms);
  push(1, 20, 4ms);
  push(2, 20, 2ms);
  EXPECT_NEAR(*watch_.seconds_per_byte(), 4e-8, 1e-12);
}

TEST_F(LinkWatchTest, leaves_out_pushes_that_waited_to_be_read) {
  push(0, 30, 1us, true);
  EXPECT_FALSE(watch_.seconds_per_byte());
}

TEST_F(LinkWatchTest, leaves_out_what_no_link_can_have_taken) {
  push(0, 30, 0ns);
  EXPECT_FALSE(watch_.seconds_per_byte());
  watch_.received(WorkerId(5), round_of(1), chunk, now_);  // of no push
  EXPECT_FALSE(watch_.seconds_per_byte());
}

TEST_F(LinkWatchTest, leaves_out_pushes_that_shared_the_link) {
  const WorkerId one(0);
  const WorkerId other(1);
  watch_.began(one, round_of(1), false, now_);
  watch_.began(other, round_of(1), false, now_);
  for (int i = 0; i < 20; ++i) {
    now_ += 1ms;
    watch_.received(one, round_of(1), chunk, now_);
    watch_.received(other, round_of(1), chunk, now_);
  }
  watch_.ended(other, round_of(1));
  for (int i = 0; i < 20; ++i) {
    now_ += 1ms;
    watch_.received(one, round_of(1), chunk, now_);
  }
  EXPECT_FALSE(watch_.seconds_per_byte());
}

}  // namespace
}  // namespace stagger
