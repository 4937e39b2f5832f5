#include "ps/drift_gate.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(DriftGate, opens_when_one_of_the_two_was_off_three_times_in_a_row) {
  for (const double off : {1.3, 0.7}) {
    DriftGate gate;
    EXPECT_FALSE(gate.evaluated(off, 1.0));
    EXPECT_FALSE(gate.evaluated(1.0, off));
    EXPECT_TRUE(gate.evaluated(off, off));
    EXPECT_FALSE(gate.evaluated(off, 1.0));
  }
}

TEST(DriftGate, forgets_what_has_passed) {
  DriftGate gate;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(gate.evaluated(2.0, 1.0));
    EXPECT_FALSE(gate.evaluated(2.0, 1.0));
    EXPECT_FALSE(gate.evaluated(1.1, 0.9));
  }
}

TEST(DriftGate, stays_shut_within_its_share) {
  DriftGate gate;
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(gate.evaluated(1.19, 0.85));
}

}  // namespace
}  // namespace stagger
