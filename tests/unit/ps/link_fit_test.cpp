#include "ps/link_fit.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// 100 us and a byte in 10 ns.
Duration time_of(std::uint64_t bytes) {
  return 100us + 10ns * bytes;
}

TEST(LinkFit, knows_nothing_before_it_was_told) {
  EXPECT_FALSE(LinkFit().cost());
}

TEST(LinkFit, finds_the_line_through_exact_times) {
  LinkFit fit;
  for (const std::uint64_t bytes : {4096U, 16384U, 65536U, 1048576U})
    fit.add(bytes, time_of(bytes));
  ASSERT_TRUE(fit.cost());
  EXPECT_NEAR(to_microseconds(fit.cost()->start), 100.0, 0.1);
  EXPECT_NEAR(fit.cost()->seconds_per_byte, 1e-8, 1e-11);
}

TEST(LinkFit, goes_by_the_least_time_of_each_size) {
  LinkFit fit;
  for (const std::uint64_t bytes : {4096U, 65536U, 1048576U}) {
    fit.add(bytes, 30 * time_of(bytes));
    fit.add(bytes, time_of(bytes));
    fit.add(bytes, 2 * time_of(bytes));
  }
  ASSERT_TRUE(fit.cost());
  EXPECT_NEAR(to_microseconds(fit.cost()->start), 100.0, 0.1);
}

TEST(LinkFit, has_no_start_while_there_is_one_size) {
  LinkFit fit;
  fit.add(1000, 1ms);
  ASSERT_TRUE(fit.cost());
  EXPECT_EQ(fit.cost()->start, 0ns);
  EXPECT_NEAR(fit.cost()->seconds_per_byte, 1e-6, 1e-12);
}

TEST(LinkFit, ignores_what_no_link_can_have_taken) {
  LinkFit fit;
  fit.add(0, 1ms);
  fit.add(4096, 0ns);
  fit.add(4096, -5ms);
  fit.add(1'000'000, 1ns);
  fit.add(4096, 90000s);
  EXPECT_FALSE(fit.cost());
  fit.add(4096, 1ms);
  fit.add(4096, 1ns);
  EXPECT_NEAR(fit.cost()->need_ns(4096), 1e6, 1.0);
}

TEST(LinkFit, is_never_negative) {
  LinkFit steep;  // a line through these would begin below 0
  steep.add(1000, 1us);
  steep.add(2000, 10us);
  EXPECT_EQ(steep.cost()->start, 0ns);
  EXPECT_GT(steep.cost()->seconds_per_byte, 0.0);
  LinkFit falling;
  falling.add(1000, 10us);
  falling.add(2000, 1us);
  EXPECT_GT(falling.cost()->start, 0ns);
  EXPECT_EQ(falling.cost()->seconds_per_byte, 0.0);
}

}  // namespace
}  // namespace stagger
