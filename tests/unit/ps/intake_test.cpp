#include "ps/intake.hpp"

#include <map>
#include <optional>

#include <gtest/gtest.h>

namespace stagger {
namespace {

ChunkId chunk(std::uint32_t group) {
  return {.round = {.group = GroupId(group), .iteration = Iteration(1)}, .chunk = 0};
}

/// Each chunk waits for the worker that a table names.
std::optional<WorkerId> victim(
    const Intake& intake, const std::map<std::uint32_t, std::uint32_t>& awaited) {
  return intake.victim([&](ChunkId id) -> std::optional<WorkerId> {
    const auto found = awaited.find(id.round.group.value());
    if (found == awaited.end()) return std::nullopt;
    return WorkerId(found->second);
  });
}

TEST(Intake, keeps_up_to_its_bound) {
  Intake intake(2);
  EXPECT_TRUE(intake.try_keep());
  EXPECT_TRUE(intake.has_room());
  EXPECT_TRUE(intake.try_keep());
  EXPECT_FALSE(intake.has_room());
  EXPECT_FALSE(intake.try_keep());
  EXPECT_EQ(intake.kept(), 2U);
  intake.release();
  EXPECT_TRUE(intake.try_keep());
}

TEST(Intake, may_have_no_room_at_all) {
  Intake intake(0);
  EXPECT_FALSE(intake.try_keep());
}

TEST(Intake, remembers_who_holds_what) {
  Intake intake(0);
  intake.hold(WorkerId(1), chunk(3));
  EXPECT_EQ(intake.holding().at(WorkerId(1)), chunk(3));
  intake.unhold(WorkerId(1));
  intake.unhold(WorkerId(1));
  EXPECT_TRUE(intake.holding().empty());
}

TEST(Intake, sheds_nothing_while_a_holder_waits_for_somebody_who_reads) {
  Intake intake(0);
  EXPECT_EQ(victim(intake, {}), std::nullopt);
  intake.hold(WorkerId(1), chunk(0));
  intake.hold(WorkerId(2), chunk(1));
  EXPECT_EQ(victim(intake, {{0, 0}, {1, 1}}), std::nullopt);
}

TEST(Intake, sheds_one_of_two_that_wait_for_each_other) {
  Intake intake(0);
  intake.hold(WorkerId(1), chunk(0));
  intake.hold(WorkerId(2), chunk(1));
  EXPECT_EQ(victim(intake, {{0, 2}, {1, 1}}), WorkerId(1));
}

TEST(Intake, finds_the_ring_behind_those_that_wait_for_it) {
  Intake intake(0);
  intake.hold(WorkerId(0), chunk(0));  // waits for 3, which is in a ring with 4 and 5
  intake.hold(WorkerId(3), chunk(3));
  intake.hold(WorkerId(4), chunk(4));
  intake.hold(WorkerId(5), chunk(5));
  EXPECT_EQ(victim(intake, {{0, 3}, {3, 4}, {4, 5}, {5, 3}}), WorkerId(3));
}

TEST(Intake, sheds_nothing_of_a_chunk_that_waits_for_nobody) {
  Intake intake(0);
  intake.hold(WorkerId(1), chunk(0));
  EXPECT_EQ(victim(intake, {}), std::nullopt);
}

}  // namespace
}  // namespace stagger
