#include "ps/link_cost.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagger {
namespace {

using testing::HasSubstr;

TEST(LinkCost, is_a_start_and_a_time_for_each_byte) {
  const auto link = make_link_cost(8e9, 50us);  // a byte in a nanosecond
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->need_ns(0), 50'000.0);
  EXPECT_EQ(link->need_ns(1'000), 51'000.0);
}

TEST(LinkCost, of_a_link_that_workers_share_is_the_sum_of_theirs) {
  const LinkCost link{.start = 10us, .seconds_per_byte = 1e-9};
  const LinkCost shared = shared_by(link, 4);
  EXPECT_EQ(shared.start, 40us);
  EXPECT_DOUBLE_EQ(shared.need_ns(1'000), 4 * link.need_ns(1'000));
  EXPECT_EQ(shared_by(link, 1), link);
}

TEST(LinkCost, refuses_links_that_cannot_be) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double rate :
       {0.0, -1e9, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    const auto link = make_link_cost(rate, 0us);
    ASSERT_TRUE(link.has_error()) << rate;
    EXPECT_THAT(link.error().detail, HasSubstr("link.rate_bits_per_second")) << rate;
  }
  const auto negative = make_link_cost(1e9, -1us);
  ASSERT_TRUE(negative.has_error());
  EXPECT_THAT(negative.error().detail, HasSubstr("link.start_us = -1"));
}

TEST(LinkCost, never_wraps) {
  const auto slowest = make_link_cost(1e-300, 1us);
  ASSERT_TRUE(slowest.has_value());
  EXPECT_GT(saturated(slowest->need_ns(std::numeric_limits<std::uint64_t>::max())), 0ns);
  EXPECT_LT(saturated(std::numeric_limits<double>::infinity()), Duration::max() / 64);
  EXPECT_EQ(saturated(std::numeric_limits<double>::quiet_NaN()), 0ns);
  EXPECT_EQ(saturated(-5.0), 0ns);
  EXPECT_EQ(saturated(5.0), 5ns);
}

}  // namespace
}  // namespace stagger
