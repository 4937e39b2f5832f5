#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "engine/dataset.hpp"

namespace stagger {
namespace {

using Samples = std::vector<std::uint32_t>;

Samples read(BatchOrder& order, std::uint64_t iteration, std::uint32_t rank) {
  const std::span<const std::uint32_t> samples = order.samples(iteration, rank);
  return {samples.begin(), samples.end()};
}

/// What all ranks read in one iteration, in rank order.
Samples read_all(BatchOrder& order, std::uint64_t iteration, std::uint32_t workers) {
  Samples all;
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    const Samples part = read(order, iteration, rank);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Samples read_epoch(BatchOrder& order, std::uint64_t epoch, std::uint32_t workers) {
  Samples all;
  const std::uint64_t length = order.iterations_per_epoch();
  for (std::uint64_t iteration = 1; iteration <= length; ++iteration) {
    const Samples part = read_all(order, epoch * length + iteration, workers);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(BatchOrder, reads_each_sample_once_per_epoch_over_all_ranks) {
  for (const std::size_t samples : {1U, 12U, 13U, 97U, 100U}) {
    Samples every(samples);
    std::iota(every.begin(), every.end(), 0U);
    for (const std::uint32_t workers : {1U, 3U, 4U}) {
      BatchOrder order(samples, 4, workers, 7, true);
      for (const std::uint64_t epoch : {0U, 1U, 5U}) {
        Samples all = read_epoch(order, epoch, workers);
        std::sort(all.begin(), all.end());
        ASSERT_EQ(all, every);
      }
    }
  }
}

TEST(BatchOrder, drops_a_short_last_batch_unless_told_to_keep_it) {
  BatchOrder dropping(100, 8, 3, 7, false);
  EXPECT_EQ(dropping.iterations_per_epoch(), 4U);
  Samples all = read_epoch(dropping, 0, 3);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), 96U);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());

  EXPECT_EQ(BatchOrder(100, 8, 3, 7, true).iterations_per_epoch(), 5U);
  EXPECT_EQ(BatchOrder(96, 8, 3, 7, true).iterations_per_epoch(), 4U);
  EXPECT_EQ(BatchOrder(20, 8, 3, 7, false).iterations_per_epoch(), 0U);
}

TEST(BatchOrder, splits_a_short_last_batch_as_evenly_as_it_goes) {
  BatchOrder order(26, 8, 3, 7, true);  // 24 and a rest of 2
  EXPECT_EQ(read(order, 2, 0).size(), 1U);
  EXPECT_EQ(read(order, 2, 1).size(), 1U);
  EXPECT_TRUE(read(order, 2, 2).empty());
  BatchOrder larger(41, 8, 3, 7, true);  // a rest of 17
  EXPECT_EQ(read(larger, 2, 0).size(), 6U);
  EXPECT_EQ(read(larger, 2, 1).size(), 6U);
  EXPECT_EQ(read(larger, 2, 2).size(), 5U);
}

TEST(BatchOrder, gives_many_workers_the_batches_of_one_with_a_larger_batch) {
  for (const bool keep_last : {false, true}) {
    BatchOrder many(103, 5, 4, 9, keep_last);
    BatchOrder one(103, 20, 1, 9, keep_last);
    ASSERT_EQ(many.iterations_per_epoch(), one.iterations_per_epoch());
    for (std::uint64_t iteration = 1; iteration <= 20; ++iteration) {
      ASSERT_EQ(read_all(many, iteration, 4), read(one, iteration, 0)) << iteration;
    }
  }
}

TEST(BatchOrder, depends_on_seed_and_epoch_alone) {
  BatchOrder order(50, 5, 2, 3, false);
  BatchOrder same(50, 5, 2, 3, false);
  BatchOrder other(50, 5, 2, 4, false);
  const Samples last = read(order, 5 * 7 + 2, 1);  // the eighth epoch first
  const Samples first = read(order, 2, 1);
  EXPECT_EQ(read(same, 2, 1), first);
  EXPECT_EQ(read(same, 5 * 7 + 2, 1), last);
  EXPECT_NE(read(other, 2, 1), first);
  EXPECT_NE(first, last);
}

TEST(BatchOrder, puts_every_sample_everywhere_about_equally_often) {
  // Where sample 0 lands in 2000 epochs of 8: each place 250 times, give or take five standard
  // deviations.
  std::vector<int> places(8, 0);
  BatchOrder order(8, 8, 1, 1, false);
  for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
    const Samples all = read(order, epoch + 1, 0);
    ++places[static_cast<std::size_t>(std::find(all.begin(), all.end(), 0U) - all.begin())];
  }
  for (const int count : places) {
    EXPECT_NEAR(count, 250, 75);
  }
}

TEST(BatchOrder, is_pinned_so_that_a_seed_means_the_same_next_year) {
  BatchOrder order(10, 10, 1, 1, false);
  EXPECT_EQ(read(order, 1, 0), (Samples{0, 2, 3, 8, 6, 4, 7, 9, 1, 5}));
  EXPECT_EQ(read(order, 2, 0), (Samples{1, 8, 0, 2, 3, 7, 5, 4, 6, 9}));
}

TEST(BatchOrderDeathTest, refuses_what_no_caller_may_ask) {
  EXPECT_DEATH(BatchOrder(0, 1, 1, 1, true), "CHECK failed");
  EXPECT_DEATH(BatchOrder(1, 0, 1, 1, true), "CHECK failed");
  EXPECT_DEATH(BatchOrder(1, 1, 0, 1, true), "CHECK failed");
  BatchOrder order(10, 2, 2, 1, false);
  EXPECT_DEATH(order.samples(0, 0), "CHECK failed");
  EXPECT_DEATH(order.samples(1, 2), "CHECK failed");
  BatchOrder none(3, 2, 2, 1, false);
  EXPECT_DEATH(none.samples(1, 0), "fewer samples than a global batch");
}

}  // namespace
}  // namespace stagger
