#include "ps/membership.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagger {
namespace {

using testing::HasSubstr;
using State = Membership::State;

constexpr TimePoint at(Duration since_start) {
  return TimePoint{} + since_start;
}

Membership members(std::uint32_t world) {
  return Membership({.world = world, .worker_max = 5s});
}

/// Both ranks active from iteration 1, heard of at 0 s.
Membership started() {
  Membership membership = members(2);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const auto worker = membership.join(rank, "host" + std::to_string(rank), at(0s));
    membership.activate(worker.value(), Iteration(1));
  }
  return membership;
}

TEST(Membership, expects_everybody_at_first) {
  const Membership membership = members(3);
  EXPECT_EQ(membership.world(), 3U);
  EXPECT_EQ(membership.in_state(State::expected).size(), 3U);
  EXPECT_FALSE(membership.all_joined());
  EXPECT_FALSE(membership.all_ended());
  EXPECT_TRUE(membership.absent(WorkerId(0), Iteration(1)));
  EXPECT_EQ(membership.next_evaluation(), time_point_max);
}

TEST(Membership, assigns_the_lowest_free_rank) {
  Membership membership = members(3);
  EXPECT_EQ(membership.join(1, "b", at(0s)).value(), WorkerId(1));
  EXPECT_EQ(membership.join(-1, "a", at(0s)).value(), WorkerId(0));
  EXPECT_EQ(membership.join(-1, "c", at(0s)).value(), WorkerId(2));
  EXPECT_TRUE(membership.all_joined());
  const auto full = membership.join(-1, "d", at(0s));
  ASSERT_FALSE(full.has_value());
  EXPECT_THAT(full.error().detail, HasSubstr("all 3 ranks"));
}

TEST(Membership, refuses_ranks_that_do_not_exist) {
  Membership membership = members(2);
  for (const std::int32_t rank : {-2, 2, 1000}) {
    const auto refused = membership.join(rank, "a", at(0s));
    ASSERT_FALSE(refused.has_value()) << rank;
    EXPECT_EQ(refused.error().code, Errc::refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("0..1"));
  }
}

TEST(Membership, names_both_addresses_when_a_live_rank_is_asked_for) {
  Membership membership = members(2);
  membership.join(0, "first:1", at(0s)).value();
  auto refused = membership.join(0, "second:2", at(0s));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().detail, HasSubstr("first:1"));
  EXPECT_THAT(refused.error().detail, HasSubstr("second:2"));
  membership.activate(WorkerId(0), Iteration(1));
  EXPECT_FALSE(membership.join(0, "second:2", at(0s)).has_value());
}

TEST(Membership, counts_a_worker_from_its_first_iteration_on) {
  Membership membership = members(1);
  membership.join(0, "a", at(0s)).value();
  EXPECT_EQ(membership.member(WorkerId(0)).state, State::joined);
  EXPECT_TRUE(membership.absent(WorkerId(0), Iteration(1'000'000)));
  membership.activate(WorkerId(0), Iteration(8));
  EXPECT_EQ(membership.member(WorkerId(0)).state, State::active);
  EXPECT_TRUE(membership.absent(WorkerId(0), Iteration(7)));
  EXPECT_FALSE(membership.absent(WorkerId(0), Iteration(8)));
}

TEST(Membership, expects_a_worker_again_that_is_lost_before_the_start) {
  Membership membership = members(1);
  membership.join(0, "a", at(0s)).value();
  const auto incarnation = membership.member(WorkerId(0)).incarnation;
  membership.disconnected(WorkerId(0), incarnation, "reset", at(1s));
  EXPECT_EQ(membership.member(WorkerId(0)).state, State::expected);
  EXPECT_FALSE(membership.all_joined());
  EXPECT_TRUE(membership.join(0, "a", at(2s)).has_value());
}

TEST(Membership, calls_a_lost_worker_silent_and_then_gone) {
  Membership membership = started();
  membership.heard(WorkerId(0), membership.member(WorkerId(0)).incarnation, at(4s));
  membership.disconnected(
      WorkerId(1), membership.member(WorkerId(1)).incarnation, "connection reset", at(4s));
  EXPECT_EQ(membership.member(WorkerId(1)).state, State::silent);
  EXPECT_EQ(membership.member(WorkerId(1)).reason, "connection reset");
  EXPECT_FALSE(membership.absent(WorkerId(1), Iteration(3)));
  EXPECT_EQ(membership.next_evaluation(), at(5s));
  EXPECT_TRUE(membership.evaluate(at(5s) - 1ns).empty());
  EXPECT_EQ(membership.evaluate(at(5s)), std::vector{WorkerId(1)});
  EXPECT_EQ(membership.member(WorkerId(1)).state, State::gone);
  EXPECT_TRUE(membership.absent(WorkerId(1), Iteration(3)));
  EXPECT_TRUE(membership.evaluate(at(6s)).empty());
  EXPECT_EQ(membership.next_evaluation(), at(9s));
}

TEST(Membership, calls_a_connected_worker_gone_that_says_nothing_and_how_long) {
  Membership membership = started();
  membership.heard(WorkerId(0), membership.member(WorkerId(0)).incarnation, at(6s));
  EXPECT_EQ(membership.evaluate(at(6s)), std::vector{WorkerId(1)});
  EXPECT_EQ(membership.member(WorkerId(1)).reason, "silent for 6.0 s");
  EXPECT_FALSE(membership.all_ended());
}

TEST(Membership, gives_the_rank_of_a_silent_worker_to_its_next_self) {
  Membership membership = started();
  const auto former = membership.member(WorkerId(1)).incarnation;
  membership.disconnected(WorkerId(1), former, "reset", at(1s));
  EXPECT_EQ(membership.join(1, "elsewhere", at(2s)).value(), WorkerId(1));
  EXPECT_NE(membership.member(WorkerId(1)).incarnation, former);
  EXPECT_EQ(membership.member(WorkerId(1)).address, "elsewhere");
  EXPECT_EQ(membership.member(WorkerId(1)).reason, "");
  EXPECT_TRUE(membership.absent(WorkerId(1), Iteration(50)));
}

TEST(Membership, hears_nothing_from_a_former_self) {
  Membership membership = started();
  const auto former = membership.member(WorkerId(1)).incarnation;
  membership.disconnected(WorkerId(1), former, "reset", at(1s));
  membership.join(1, "elsewhere", at(2s)).value();
  membership.activate(WorkerId(1), Iteration(20));
  membership.disconnected(WorkerId(1), former, "reset again", at(3s));
  EXPECT_EQ(membership.member(WorkerId(1)).state, State::active);
  membership.heard(WorkerId(1), former, at(100s));
  EXPECT_EQ(membership.member(WorkerId(1)).heard_at, at(2s));
}

TEST(Membership, assigns_gone_and_left_ranks_anew) {
  Membership membership = started();
  membership.leave(WorkerId(0), "done");
  EXPECT_EQ(membership.evaluate(at(9s)), std::vector{WorkerId(1)});
  EXPECT_TRUE(membership.all_ended());
  EXPECT_EQ(membership.join(1, "x", at(10s)).value(), WorkerId(1));
  EXPECT_EQ(membership.join(-1, "y", at(10s)).value(), WorkerId(0));
  EXPECT_FALSE(membership.all_ended());
}

TEST(Membership, is_over_when_everybody_has_left) {
  Membership membership = started();
  membership.leave(WorkerId(0), "training has ended");
  EXPECT_TRUE(membership.absent(WorkerId(0), Iteration(1)));
  EXPECT_FALSE(membership.all_ended());
  membership.leave(WorkerId(1), "training has ended");
  EXPECT_TRUE(membership.all_ended());
  EXPECT_TRUE(membership.all_joined());
  EXPECT_TRUE(membership.evaluate(at(99s)).empty());
  EXPECT_EQ(membership.member(WorkerId(1)).reason, "training has ended");
}

TEST(Membership, has_a_name_for_every_state) {
  EXPECT_EQ(to_string(State::expected), "expected");
  EXPECT_EQ(to_string(State::joined), "joined");
  EXPECT_EQ(to_string(State::active), "active");
  EXPECT_EQ(to_string(State::silent), "silent");
  EXPECT_EQ(to_string(State::gone), "gone");
  EXPECT_EQ(to_string(State::left), "left");
}

}  // namespace
}  // namespace stagger
