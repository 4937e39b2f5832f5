#include "ps/aggregator.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagger {
namespace {

using Offer = Aggregator::Offer;
using testing::HasSubstr;

constexpr std::size_t chunk_floats = 16;

/// Three groups: two chunks, one, one. Period 2, old_center, beta = 1: the center becomes the mean.
class AggregatorTest : public testing::Test {
 protected:
  void make(std::uint32_t workers, std::size_t early_chunks_max, bool final_round = true) {
    Plan plan;
    plan.policy.period = 2;
    plan.policy.workers = workers;
    plan.policy.beta = 1.0;
    plan.groups.resize(3);
    set_phases(plan);
    plans_.add(plan);
    const std::vector<ParameterInfo> parameters{
        {.name = "a", .shape = {8}, .layer = 0},
        {.name = "b", .shape = {16}, .layer = 1},
        {.name = "c", .shape = {24}, .layer = 2}};
    const Arena initial(ArenaLayout(
        parameters, {{.begin = 2, .end = 3}, {.begin = 1, .end = 2}, {.begin = 0, .end = 1}}));
    center_ = std::make_unique<Center>(initial, chunk_floats);
    aggregator_ = std::make_unique<Aggregator>(
        *center_,
        plans_,
        Aggregator::Options{
            .early_chunks_max = early_chunks_max,
            .last_iteration = Iteration(10),
            .final_round = final_round,
            .learning_rate = {},
            .order =
                [this](const Plan& in_force, RoundId round) {
                  return order(in_force, round);
                }},
        [this](WorkerId worker, Iteration) { return absent_.contains(worker.value()); });
  }

  /// Ranks from the one that the test has put first, and round again.
  std::vector<WorkerId> order(const Plan& plan, RoundId round) const {
    std::vector<WorkerId> workers = round_order(plan, round);
    const auto first = first_by_group_.at(round.group.value());
    std::rotate(workers.begin(), workers.begin() + first, workers.end());
    return workers;
  }

  /// Of group 0 and 2 in odd iterations ((3 - g) mod 2 == 1), of group 1 in even ones.
  static ChunkId id(std::uint32_t group, std::uint64_t iteration, std::uint32_t chunk = 0) {
    return {.round = {.group = GroupId(group), .iteration = Iteration(iteration)}, .chunk = chunk};
  }

  Result<void> check(std::uint32_t worker, ChunkId chunk) {
    return aggregator_->check(WorkerId(worker), {.id = chunk, .plan = PlanVersion(1)});
  }

  std::string refusal(std::uint32_t worker, const ChunkHead& head) {
    const auto checked = aggregator_->check(WorkerId(worker), head);
    return checked.has_value() ? "accepted" : checked.error().detail;
  }

  Offer offer(std::uint32_t worker, ChunkId chunk, float value) {
    EXPECT_TRUE(check(worker, chunk).has_value());
    ChunkBuffer values = center_->pool().acquire();
    const auto used = values->span().first(center_->chunk_size(chunk.round.group, chunk.chunk));
    std::fill(used.begin(), used.end(), value);
    return aggregator_->offer(WorkerId(worker), chunk, values);
  }

  /// What a session does with an answer "held".
  void hold(std::uint32_t worker, ChunkId chunk) {
    aggregator_->intake().hold(WorkerId(worker), chunk);
  }

  Offer retry(std::uint32_t worker, ChunkId chunk, float value) {
    aggregator_->intake().unhold(WorkerId(worker));
    return offer(worker, chunk, value);
  }

  float center(ChunkId chunk) const {
    return center_->chunk(chunk.round.group, chunk.chunk).span().front();
  }

  std::set<std::uint32_t> absent_;
  std::vector<std::ptrdiff_t> first_by_group_{0, 0, 0};
  PlanHistory plans_;
  std::unique_ptr<Center> center_;
  std::unique_ptr<Aggregator> aggregator_;
};

TEST_F(AggregatorTest, closes_a_round_chunk_by_chunk_when_all_have_come) {
  make(2, 8);
  EXPECT_EQ(offer(0, id(0, 1, 0), 1.0F), Offer::taken);
  EXPECT_EQ(offer(0, id(0, 1, 1), 2.0F), Offer::taken);
  EXPECT_TRUE(aggregator_->take_closed().empty());
  EXPECT_EQ(offer(1, id(0, 1, 1), 4.0F), Offer::taken);
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(0, 1, 1)});
  EXPECT_EQ(aggregator_->rounds_closed(), 0U);
  EXPECT_EQ(offer(1, id(0, 1, 0), 5.0F), Offer::taken);
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(0, 1, 0)});
  EXPECT_EQ(aggregator_->rounds_closed(), 1U);
  EXPECT_EQ(center(id(0, 1, 0)), 3.0F);
  EXPECT_EQ(center(id(0, 1, 1)), 3.0F);
}

TEST_F(AggregatorTest, keeps_what_comes_early_and_sums_it_in_turn) {
  make(3, 8);
  EXPECT_EQ(offer(2, id(1, 2), 3.0F), Offer::kept);
  EXPECT_EQ(offer(1, id(1, 2), 2.0F), Offer::kept);
  EXPECT_EQ(aggregator_->intake().kept(), 2U);
  EXPECT_EQ(offer(0, id(1, 2), 1.0F), Offer::taken);
  EXPECT_EQ(aggregator_->intake().kept(), 0U);
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(1, 2)});
  EXPECT_EQ(center(id(1, 2)), 2.0F);
}

TEST_F(AggregatorTest, sums_in_planned_order_whatever_comes_first) {
  // 1e8 + 1 loses the 1 in float32: the order shows in the bits.
  const std::vector<float> values{1e8F, 1.0F, -1e8F};
  std::vector<float> results;
  for (const std::vector<std::uint32_t>& arrival :
       {std::vector<std::uint32_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}) {
    plans_ = PlanHistory();
    make(3, 8);
    for (const std::uint32_t worker : arrival)
      offer(worker, id(1, 2), values[worker]);
    results.push_back(center(id(1, 2)));
  }
  EXPECT_EQ(results, std::vector<float>(4, (1e8F + 1.0F - 1e8F) / 3.0F));
}

TEST_F(AggregatorTest, applies_a_repeated_push_once_while_open_and_after_closing) {
  make(2, 8);
  EXPECT_EQ(offer(0, id(1, 2), 1.0F), Offer::taken);
  EXPECT_EQ(offer(0, id(1, 2), 9.0F), Offer::repeated);
  EXPECT_EQ(offer(1, id(1, 2), 3.0F), Offer::taken);
  EXPECT_EQ(offer(0, id(1, 2), 9.0F), Offer::repeated);
  EXPECT_EQ(offer(1, id(1, 2), 9.0F), Offer::repeated);
  EXPECT_EQ(center(id(1, 2)), 2.0F);
  EXPECT_EQ(aggregator_->rounds_closed(), 1U);
}

TEST_F(AggregatorTest, refuses_with_reasons_what_no_worker_may_push) {
  make(2, 8);
  const PlanVersion plan(1);
  EXPECT_THAT(refusal(0, {.id = id(0, 1), .plan = plan, .codec = 3}), HasSubstr("no codec 3"));
  EXPECT_THAT(refusal(0, {.id = id(3, 1), .plan = plan}), HasSubstr("there are 3 groups"));
  EXPECT_THAT(refusal(0, {.id = id(0, 1, 2), .plan = plan}), HasSubstr("the group has 2 chunks"));
  EXPECT_THAT(refusal(0, {.id = id(0, 0), .plan = plan}), HasSubstr("count from 1"));
  EXPECT_THAT(
      refusal(0, {.id = id(0, 1), .plan = PlanVersion(2)}),
      HasSubstr("plan version 2, 1 is in force"));
  EXPECT_THAT(refusal(0, {.id = id(0, 2), .plan = plan}), HasSubstr("not due (period 2)"));
  EXPECT_THAT(refusal(0, {.id = id(0, 12), .plan = plan}), HasSubstr("not due"));
  EXPECT_THAT(refusal(0, {.id = id(0, ~std::uint64_t{0}), .plan = plan}), HasSubstr("not due"));
  EXPECT_THAT(refusal(0, {.id = id(0, 2), .plan = plan}), HasSubstr("group 0 iteration 2 chunk 0"));
  EXPECT_TRUE(aggregator_->waiting().empty());  // a refused push opens no round
}

TEST_F(AggregatorTest, refuses_stale_rounds_and_a_second_one_of_a_group) {
  make(2, 8);
  for (const std::uint32_t worker : {0U, 1U})
    offer(worker, id(1, 2), 1.0F);
  for (const std::uint32_t worker : {0U, 1U})
    offer(worker, id(1, 4), 1.0F);
  EXPECT_THAT(
      refusal(0, {.id = id(1, 2), .plan = PlanVersion(1)}),
      HasSubstr("stale, the round of iteration 4 has closed"));
  EXPECT_TRUE(check(0, id(1, 4)).has_value());
  EXPECT_EQ(offer(0, id(1, 6), 1.0F), Offer::taken);
  EXPECT_THAT(
      refusal(1, {.id = id(1, 8), .plan = PlanVersion(1)}),
      HasSubstr("the round of iteration 6 is open"));
}

TEST_F(AggregatorTest, has_a_final_round_of_every_group_if_it_was_asked_for) {
  make(1, 8);
  EXPECT_TRUE(aggregator_->is_final(Iteration(11)));
  EXPECT_FALSE(aggregator_->is_final(Iteration(10)));
  for (const std::uint32_t group : {0U, 1U, 2U})
    EXPECT_TRUE(check(0, id(group, 11)).has_value());
  aggregator_->set_last_iteration(Iteration(7));
  EXPECT_TRUE(aggregator_->is_final(Iteration(8)));
  EXPECT_FALSE(aggregator_->is_final(Iteration(11)));

  plans_ = PlanHistory();
  make(1, 8, false);
  EXPECT_FALSE(aggregator_->is_final(Iteration(11)));
  EXPECT_FALSE(check(0, id(0, 11)).has_value());
}

TEST_F(AggregatorTest, skips_a_chunk_that_is_not_finite_and_no_other) {
  make(2, 8);
  EXPECT_EQ(offer(0, id(0, 1, 0), std::numeric_limits<float>::quiet_NaN()), Offer::skipped);
  EXPECT_EQ(offer(0, id(0, 1, 1), 2.0F), Offer::taken);
  EXPECT_EQ(offer(1, id(0, 1, 0), 8.0F), Offer::taken);
  EXPECT_EQ(offer(1, id(0, 1, 1), 4.0F), Offer::taken);
  EXPECT_EQ(center_->chunk(GroupId(0), 0).present, 1U);
  EXPECT_EQ(center_->chunk(GroupId(0), 1).present, 2U);
  EXPECT_EQ(
      center(id(0, 1, 0)), 4.0F);  // beta/K of the one that came, the absent one counts as zero
  EXPECT_EQ(center(id(0, 1, 1)), 3.0F);
}

TEST_F(AggregatorTest, closes_a_chunk_in_which_nobody_is_finite) {
  make(2, 8);
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(offer(1, id(1, 2), -infinite), Offer::skipped);
  EXPECT_EQ(offer(0, id(1, 2), infinite), Offer::skipped);
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(1, 2)});
  EXPECT_EQ(center(id(1, 2)), 0.0F);
}

TEST_F(AggregatorTest, closes_short_when_the_awaited_worker_is_declared_absent) {
  make(3, 8);
  offer(0, id(0, 1, 0), 3.0F);
  offer(2, id(0, 1, 0), 6.0F);
  ASSERT_EQ(aggregator_->waiting().size(), 1U);
  EXPECT_EQ(aggregator_->waiting()[0].round, id(0, 1).round);
  EXPECT_EQ(aggregator_->waiting()[0].missing.size(), 3U);  // chunk 1 waits for all
  absent_.insert(1);
  aggregator_->skip_absent(WorkerId(1));
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(0, 1, 0)});
  EXPECT_EQ(center(id(0, 1, 0)), 3.0F);
  EXPECT_EQ(aggregator_->waiting()[0].missing, (std::vector{WorkerId(0), WorkerId(2)}));
  EXPECT_THAT(
      refusal(1, {.id = id(0, 1, 1), .plan = PlanVersion(1)}), HasSubstr("declared absent"));
}

TEST_F(AggregatorTest, still_counts_what_an_absent_worker_brought_before) {
  make(2, 8);
  EXPECT_EQ(offer(1, id(0, 1, 0), 6.0F), Offer::kept);
  absent_.insert(1);
  aggregator_->skip_absent(WorkerId(1));
  EXPECT_EQ(offer(0, id(0, 1, 0), 2.0F), Offer::taken);
  EXPECT_EQ(offer(0, id(0, 1, 1), 2.0F), Offer::taken);
  EXPECT_EQ(center(id(0, 1, 0)), 4.0F);
  EXPECT_EQ(center(id(0, 1, 1)), 1.0F);
  EXPECT_EQ(aggregator_->rounds_closed(), 1U);
}

TEST_F(AggregatorTest, opens_rounds_without_those_who_are_absent_already) {
  make(2, 8);
  absent_.insert(0);
  EXPECT_EQ(offer(1, id(1, 2), 5.0F), Offer::taken);
  EXPECT_EQ(aggregator_->take_closed(), std::vector{id(1, 2)});
  EXPECT_EQ(center_->chunk(GroupId(1), 0).present, 1U);
}

TEST_F(AggregatorTest, holds_when_there_is_no_room_and_takes_it_in_turn) {
  make(2, 0);
  EXPECT_EQ(offer(1, id(1, 2), 4.0F), Offer::held);
  hold(1, id(1, 2));
  EXPECT_FALSE(aggregator_->can_place(WorkerId(1), id(1, 2)));
  EXPECT_EQ(aggregator_->take_victim(), std::nullopt);
  EXPECT_EQ(offer(0, id(1, 2), 2.0F), Offer::taken);
  EXPECT_TRUE(aggregator_->can_place(WorkerId(1), id(1, 2)));
  EXPECT_EQ(retry(1, id(1, 2), 4.0F), Offer::taken);
  EXPECT_EQ(center(id(1, 2)), 3.0F);
}

TEST_F(AggregatorTest, can_place_a_held_chunk_when_room_appears) {
  make(3, 1);
  EXPECT_EQ(offer(1, id(1, 2), 1.0F), Offer::kept);
  EXPECT_EQ(offer(2, id(1, 2), 1.0F), Offer::held);
  hold(2, id(1, 2));
  EXPECT_FALSE(aggregator_->can_place(WorkerId(2), id(1, 2)));
  offer(0, id(1, 2), 1.0F);
  EXPECT_TRUE(aggregator_->can_place(WorkerId(2), id(1, 2)));
}

TEST_F(AggregatorTest, waits_for_lower_ranks_alone_so_that_its_own_order_closes_no_ring) {
  make(3, 0);
  EXPECT_EQ(offer(1, id(0, 1), 1.0F), Offer::held);
  hold(1, id(0, 1));
  EXPECT_EQ(offer(2, id(2, 1), 1.0F), Offer::held);
  hold(2, id(2, 1));
  EXPECT_EQ(aggregator_->take_victim(), std::nullopt);
}

TEST_F(AggregatorTest, sheds_one_of_a_ring_and_asks_for_it_when_its_turn_comes) {
  first_by_group_ = {1, 0, 0};
  make(2, 0);
  EXPECT_EQ(offer(0, id(0, 1, 0), 2.0F), Offer::held);  // waits for worker 1 …
  hold(0, id(0, 1, 0));
  EXPECT_EQ(aggregator_->take_victim(), std::nullopt);
  EXPECT_EQ(offer(1, id(2, 1), 4.0F), Offer::held);  // … which waits for worker 0
  hold(1, id(2, 1));
  EXPECT_EQ(aggregator_->take_victim(), WorkerId(0));
  EXPECT_EQ(aggregator_->take_victim(), std::nullopt);  // one at a time
  EXPECT_EQ(retry(0, id(0, 1, 0), 2.0F), Offer::shed);

  EXPECT_EQ(offer(0, id(2, 1), 2.0F), Offer::taken);  // stood behind the shed one
  EXPECT_TRUE(aggregator_->can_place(WorkerId(1), id(2, 1)));
  EXPECT_EQ(retry(1, id(2, 1), 4.0F), Offer::taken);
  EXPECT_TRUE(aggregator_->take_resends().empty());
  EXPECT_EQ(offer(1, id(0, 1, 0), 4.0F), Offer::taken);
  EXPECT_EQ(aggregator_->take_resends(), (std::vector{std::pair{WorkerId(0), id(0, 1, 0)}}));
  EXPECT_EQ(offer(0, id(0, 1, 0), 2.0F), Offer::taken);
  EXPECT_TRUE(aggregator_->take_resends().empty());
  EXPECT_EQ(center(id(0, 1, 0)), 3.0F);
  EXPECT_EQ(center(id(2, 1)), 3.0F);
}

TEST_F(AggregatorTest, forgets_a_victim_whose_session_has_ended) {
  first_by_group_ = {1, 0, 0};
  make(2, 0);
  offer(0, id(0, 1, 0), 2.0F);
  hold(0, id(0, 1, 0));
  offer(1, id(2, 1), 4.0F);
  hold(1, id(2, 1));
  EXPECT_EQ(aggregator_->take_victim(), WorkerId(0));
  aggregator_->forget(WorkerId(0));
  EXPECT_EQ(offer(0, id(0, 1, 0), 2.0F), Offer::held);  // a new self is no victim
}

}  // namespace
}  // namespace stagger
