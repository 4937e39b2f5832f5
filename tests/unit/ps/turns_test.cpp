#include "ps/turns.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

TimePoint at(Duration time) {
  return TimePoint(time);
}

TurnId turn(std::uint32_t worker, std::uint64_t iteration = 1, std::uint32_t group = 0) {
  return {
      .worker = WorkerId(worker),
      .round = {.group = GroupId(group), .iteration = Iteration(iteration)},
      .chunk = 0};
}

TurnRank rank(std::uint32_t position, std::uint64_t iteration = 1, Duration planned = Duration{0}) {
  return {
      .slot = {},
      .iteration = Iteration(iteration),
      .planned = planned,
      .chunk = 0,
      .position = position};
}

/// A push of a MiB that begins `handover` after its go and takes `sending`.
void serve(Turns& turns, const TurnId& id, TimePoint go, Duration handover, Duration sending) {
  turns.arrived(id, go + handover);
  turns.began(id, go + handover);
  turns.ended(id, go + handover + sending);
}

/// One turn after the other has been served, so that rate and handover are known: 8 ms, 1 ms.
Turns practised(Turns::Options options) {
  Turns turns(options);
  turns.ask(turn(9), rank(0), mebibyte);
  EXPECT_EQ(turns.next(at(0ms)), turn(9));
  serve(turns, turn(9), at(0ms), 1ms, 8ms);
  return turns;
}

TEST(Turns, go_to_as_many_at_a_time_as_told) {
  for (const std::uint32_t concurrent : {1U, 2U, 3U}) {
    Turns turns({.concurrent = concurrent});
    for (std::uint32_t worker = 0; worker < 5; ++worker)
      turns.ask(turn(worker), rank(worker), mebibyte);
    std::uint32_t handed_out = 0;
    while (turns.next(at(0ms)))
      ++handed_out;
    EXPECT_EQ(handed_out, concurrent);
    turns.ended(turn(0), at(1ms));
    EXPECT_EQ(turns.next(at(1ms)), turn(concurrent));
    EXPECT_EQ(turns.next(at(1ms)), std::nullopt);
  }
}

TEST(Turns, go_in_the_order_of_the_plan_not_of_the_requests) {
  Turns turns({.concurrent = 1});
  turns.ask(turn(0), rank(0), 1);
  EXPECT_EQ(turns.next(at(0ms)), turn(0));
  turns.ask(turn(3, 2), rank(0, 2), 1);
  turns.ask(turn(2), rank(2), 1);
  turns.ask(turn(1, 1, 5), rank(0, 1, 4ms), 1);
  turns.ask(turn(1), rank(1), 1);
  TurnId before = turn(0);
  for (const TurnId& expected : {turn(1), turn(2), turn(1, 1, 5), turn(3, 2)}) {
    turns.ended(before, at(0ms));
    EXPECT_EQ(turns.next(at(0ms)), expected);
    before = expected;
  }
}

TEST(Turns, an_older_iteration_is_never_overtaken_so_that_nobody_starves) {
  Turns turns({.concurrent = 1});
  turns.ask(turn(0), rank(0), 1);
  turns.ask(turn(7), rank(7), 1);
  EXPECT_EQ(turns.next(at(0ms)), turn(0));
  TurnId before = turn(0);
  for (std::uint64_t iteration = 2; iteration < 10; ++iteration) {
    turns.ask(turn(0, iteration), rank(0, iteration), 1);
    turns.ended(before, at(0ms));
    before = *turns.next(at(0ms));
    if (before == turn(7)) return;
  }
  FAIL() << "worker 7 never had its turn";
}

TEST(Turns, the_next_is_let_go_a_handover_before_the_last_byte) {
  Turns turns = practised({.concurrent = 1});
  EXPECT_EQ(turns.handover(), 1ms);
  EXPECT_NEAR(turns.bytes_per_second(), mebibyte / 0.008, 1.0);
  turns.ask(turn(0), rank(0), mebibyte);
  turns.ask(turn(1), rank(1), mebibyte);
  turns.ask(turn(2), rank(2), mebibyte);
  ASSERT_EQ(turns.next(at(100ms)), turn(0));
  turns.began(turn(0), at(101ms));
  EXPECT_EQ(turns.next_look(at(101ms)), at(108ms));
  EXPECT_EQ(turns.next(at(107ms)), std::nullopt);
  EXPECT_EQ(turns.next(at(108ms)), turn(1));
  EXPECT_EQ(turns.next(at(108ms)), std::nullopt) << "one successor for each holder";
  turns.ended(turn(0), at(109ms));
  EXPECT_EQ(turns.next(at(109ms)), std::nullopt) << "the successor has the link now";
}

TEST(Turns, an_early_one_that_is_there_too_soon_is_not_read_beside_its_predecessor) {
  Turns turns = practised({.concurrent = 1});
  turns.ask(turn(0), rank(0), mebibyte);
  turns.ask(turn(1), rank(1), mebibyte);
  ASSERT_EQ(turns.next(at(100ms)), turn(0));
  EXPECT_TRUE(turns.may_begin(turn(0)));
  turns.began(turn(0), at(101ms));
  ASSERT_EQ(turns.next(at(108ms)), turn(1));
  turns.arrived(turn(1), at(108ms));
  EXPECT_FALSE(turns.may_begin(turn(1)));
  EXPECT_TRUE(turns.may_begin(turn(7))) << "what comes without a turn does not wait for one";
  turns.ended(turn(0), at(109ms));
  EXPECT_TRUE(turns.may_begin(turn(1)));
}

TEST(Turns, without_early_ones_the_next_waits_for_the_last_byte) {
  Turns turns = practised({.concurrent = 1, .early = false});
  turns.ask(turn(0), rank(0), mebibyte);
  turns.ask(turn(1), rank(1), mebibyte);
  ASSERT_EQ(turns.next(at(100ms)), turn(0));
  turns.began(turn(0), at(101ms));
  EXPECT_EQ(turns.next(at(200ms)), std::nullopt);
  turns.ended(turn(0), at(200ms));
  EXPECT_EQ(turns.next(at(200ms)), turn(1));
}

TEST(Turns, are_taken_back_from_a_holder_of_which_nothing_is_heard) {
  Turns turns({.concurrent = 1, .stall_max = 50ms});
  turns.ask(turn(0), rank(0), 100 * mebibyte);
  turns.ask(turn(1), rank(1), mebibyte);
  ASSERT_EQ(turns.next(at(0ms)), turn(0));
  turns.began(turn(0), at(10ms));
  turns.moved(turn(0), at(55ms));
  EXPECT_EQ(turns.next(at(100ms)), std::nullopt) << "a slow one that moves keeps its turn";
  EXPECT_EQ(turns.next_look(at(100ms)), at(105ms));
  EXPECT_EQ(turns.next(at(105ms)), turn(1));
  EXPECT_EQ(turns.take_stalled(), std::vector{turn(0)});
  turns.moved(turn(0), at(106ms));
  turns.ended(turn(0), at(107ms));
  EXPECT_EQ(turns.held(), 1U) << "what the former holder sends later frees nobody else's turn";
}

TEST(Turns, of_a_worker_that_is_gone_are_free_at_once) {
  Turns turns({.concurrent = 1});
  turns.ask(turn(0), rank(0), mebibyte);
  turns.ask(turn(0, 1, 1), rank(0, 1, 1ms), mebibyte);
  turns.ask(turn(1), rank(1), mebibyte);
  ASSERT_EQ(turns.next(at(0ms)), turn(0));
  turns.forget(WorkerId(0));
  EXPECT_EQ(turns.waiting(), 1U);
  EXPECT_EQ(turns.next(at(0ms)), turn(1));
}

TEST(Turns, a_worker_of_which_nothing_is_read_lets_the_others_go_first) {
  Turns turns({.concurrent = 1});
  turns.ask(turn(0), rank(0), mebibyte);
  turns.ask(turn(1), rank(2), mebibyte);
  turns.ask(turn(0, 1, 1), rank(1), mebibyte);
  ASSERT_EQ(turns.next(at(0ms)), turn(0));
  turns.pause(WorkerId(0));
  // Its other push stands behind the one that is not read: a turn for it would be lost time.
  EXPECT_EQ(turns.next(at(0ms)), turn(1));
  turns.ended(turn(1), at(1ms));
  EXPECT_EQ(turns.next(at(1ms)), std::nullopt);
  turns.ask(turn(0, 2, 2), rank(0), mebibyte);
  EXPECT_EQ(turns.next(at(1ms)), std::nullopt);
  EXPECT_EQ(turns.next_look(at(1ms)), time_point_max);
  turns.resume(WorkerId(0));
  EXPECT_EQ(turns.next(at(1ms)), turn(0, 2, 2));
  turns.ended(turn(0, 2, 2), at(2ms));
  EXPECT_EQ(turns.next(at(2ms)), turn(0, 1, 1));
}

TEST(Turns, a_worker_that_was_gone_is_not_paused_when_it_is_back) {
  Turns turns({.concurrent = 1});
  turns.pause(WorkerId(0));
  turns.forget(WorkerId(0));
  turns.ask(turn(0), rank(0), mebibyte);
  EXPECT_EQ(turns.next(at(0ms)), turn(0));
}

TEST(Turns, a_request_counts_once_and_a_later_round_of_the_group_replaces_it) {
  Turns turns({.concurrent = 1});
  turns.ask(turn(0), rank(0), 1);
  turns.ask(turn(0), rank(5), 1);
  EXPECT_EQ(turns.waiting(), 1U);
  turns.ask(turn(0, 4), rank(0, 4), 1);
  turns.ask(turn(0, 4, 1), rank(0, 4), 1);
  EXPECT_EQ(turns.waiting(), 2U);
  ASSERT_EQ(turns.next(at(0ms)), turn(0, 4));
  turns.ask(turn(0, 4), rank(0, 4), 1);
  EXPECT_EQ(turns.waiting(), 1U) << "who holds a turn does not get a second one";
}

TEST(Turns, a_slot_to_come_is_served_early_by_an_idle_link_only) {
  Turns turns({.concurrent = 2});
  TurnRank later = rank(0);
  later.slot = at(20ms);
  turns.ask(turn(0), later, mebibyte);
  EXPECT_EQ(turns.next(at(0ms)), turn(0));
  turns.ask(turn(1), later, mebibyte);
  EXPECT_EQ(turns.next(at(1ms)), std::nullopt);
  EXPECT_EQ(turns.next_look(at(1ms)), at(20ms));
  EXPECT_EQ(turns.next(at(20ms)), turn(1));
}

TEST(Turns, nobody_is_looked_for_when_nobody_waits) {
  Turns turns({.concurrent = 1, .stall_max = 50ms});
  EXPECT_EQ(turns.next_look(at(0ms)), time_point_max);
  turns.ask(turn(0), rank(0), 1);
  EXPECT_EQ(turns.next_look(at(3ms)), at(3ms));
  ASSERT_EQ(turns.next(at(3ms)), turn(0));
  EXPECT_EQ(turns.next_look(at(4ms)), at(53ms));
}

}  // namespace
}  // namespace stagger
