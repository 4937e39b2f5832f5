#include "ps/round.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

using enum Round::Turn;

constexpr RoundId id{.group = GroupId(2), .iteration = Iteration(5)};

std::vector<WorkerId> ranks(std::initializer_list<std::uint32_t> values) {
  std::vector<WorkerId> workers;
  for (const std::uint32_t value : values)
    workers.emplace_back(value);
  return workers;
}

TEST(Round, waits_for_everybody_at_first) {
  const Round round(id, ranks({0, 1, 2}), 2);
  EXPECT_EQ(round.id(), id);
  EXPECT_EQ(round.chunks(), 2U);
  EXPECT_FALSE(round.closed());
  EXPECT_EQ(round.missing(), ranks({0, 1, 2}));
  EXPECT_EQ(round.front(0), WorkerId(0));
  EXPECT_EQ(round.present(0), 0U);
}

TEST(Round, takes_contributions_in_its_order_alone) {
  Round round(id, ranks({2, 0, 1}), 1);
  EXPECT_EQ(round.turn(WorkerId(2), 0), next);
  EXPECT_EQ(round.turn(WorkerId(0), 0), early);
  round.take(WorkerId(2), 0);
  EXPECT_EQ(round.turn(WorkerId(0), 0), next);
  EXPECT_EQ(round.turn(WorkerId(1), 0), early);
  EXPECT_EQ(round.turn(WorkerId(2), 0), repeated);
}

TEST(Round, closes_when_the_last_required_contribution_arrives) {
  Round round(id, ranks({0, 1}), 1);
  round.take(WorkerId(0), 0);
  EXPECT_FALSE(round.closed());
  EXPECT_FALSE(round.chunk_closed(0));
  round.take(WorkerId(1), 0);
  EXPECT_TRUE(round.chunk_closed(0));
  EXPECT_TRUE(round.closed());
  EXPECT_EQ(round.present(0), 2U);
  EXPECT_EQ(round.front(0), std::nullopt);
}

TEST(Round, closes_chunk_by_chunk) {
  Round round(id, ranks({0}), 3);
  round.take(WorkerId(0), 1);
  EXPECT_TRUE(round.chunk_closed(1));
  EXPECT_FALSE(round.chunk_closed(0));
  round.take(WorkerId(0), 0);
  EXPECT_FALSE(round.closed());
  round.take(WorkerId(0), 2);
  EXPECT_TRUE(round.closed());
}

TEST(Round, remembers_what_was_kept_until_its_turn) {
  Round round(id, ranks({0, 1}), 1);
  round.keep(WorkerId(1), 0);
  EXPECT_EQ(round.turn(WorkerId(1), 0), repeated);
  EXPECT_FALSE(round.front_is_kept(0));
  round.take(WorkerId(0), 0);
  EXPECT_TRUE(round.front_is_kept(0));
  EXPECT_EQ(round.missing(), ranks({}));
  round.take(WorkerId(1), 0);
  EXPECT_TRUE(round.closed());
}

TEST(Round, knows_strangers_and_wrong_chunks) {
  const Round round(id, ranks({0, 1}), 2);
  EXPECT_EQ(round.turn(WorkerId(7), 0), unknown);
  EXPECT_EQ(round.turn(WorkerId(0), 2), unknown);
}

TEST(Round, goes_on_without_a_skipped_worker) {
  Round round(id, ranks({0, 1, 2}), 2);
  round.take(WorkerId(0), 0);
  round.skip(WorkerId(1));
  EXPECT_EQ(round.front(0), WorkerId(2));
  EXPECT_EQ(round.turn(WorkerId(1), 0), repeated);
  EXPECT_EQ(round.missing(), ranks({0, 2}));
  round.take(WorkerId(2), 0);
  EXPECT_TRUE(round.chunk_closed(0));
  EXPECT_EQ(round.present(0), 2U);
  EXPECT_EQ(round.front(1), WorkerId(0));
}

TEST(Round, counts_what_a_worker_brought_before_it_was_skipped) {
  Round round(id, ranks({0, 1}), 2);
  round.keep(WorkerId(1), 0);
  round.skip(WorkerId(1));
  round.take(WorkerId(0), 0);
  EXPECT_TRUE(round.front_is_kept(0));
  round.take(WorkerId(1), 0);
  EXPECT_EQ(round.present(0), 2U);
  round.take(WorkerId(0), 1);
  EXPECT_EQ(round.present(1), 1U);
  EXPECT_TRUE(round.closed());
}

TEST(Round, skips_one_chunk_of_a_worker_and_no_other) {
  Round round(id, ranks({0, 1}), 2);
  round.skip(WorkerId(0), 0);
  EXPECT_EQ(round.front(0), WorkerId(1));
  EXPECT_EQ(round.front(1), WorkerId(0));
  round.take(WorkerId(1), 0);
  EXPECT_EQ(round.present(0), 1U);
}

TEST(Round, closes_empty_when_nobody_is_left) {
  Round round(id, ranks({0, 1}), 1);
  round.skip(WorkerId(1));
  round.skip(WorkerId(0));
  EXPECT_TRUE(round.closed());
  EXPECT_EQ(round.present(0), 0U);
}

TEST(Round, is_skipped_by_strangers_and_twice_without_effect) {
  Round round(id, ranks({0, 1}), 1);
  round.skip(WorkerId(9));
  round.skip(WorkerId(9), 0);
  round.skip(WorkerId(0), 5);
  EXPECT_EQ(round.missing(), ranks({0, 1}));
  round.skip(WorkerId(0), 0);
  round.skip(WorkerId(0), 0);
  round.skip(WorkerId(0));
  round.take(WorkerId(1), 0);
  EXPECT_TRUE(round.closed());
  round.skip(WorkerId(1));
  EXPECT_EQ(round.present(0), 1U);
}

TEST(RoundDeathTest, sums_nothing_out_of_turn) {
  Round round(id, ranks({0, 1}), 1);
  EXPECT_DEATH(round.take(WorkerId(1), 0), "summed out of turn");
  EXPECT_DEATH(round.keep(WorkerId(0), 0), "kept out of turn");
}

}  // namespace
}  // namespace stagger
