#include "ps/link_probe.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

struct Asked {
  std::vector<std::uint64_t> sizes;
  Duration spent{0};
};

/// Answers on a link of this rate with a round trip of 400 us.
Asked answer_all(LinkProbe& probe, double bits_per_second) {
  Asked asked;
  while (const auto bytes = probe.next()) {
    const Duration time = 400us + from_seconds(static_cast<double>(*bytes) * 8.0 / bits_per_second);
    asked.sizes.push_back(*bytes);
    asked.spent += time;
    probe.answered(time);
  }
  return asked;
}

TEST(LinkProbe, grows_by_four_up_to_the_largest_payload_and_repeats_each) {
  LinkProbe probe({.repeats = 2});
  const Asked asked = answer_all(probe, 1e10);
  EXPECT_EQ(
      asked.sizes,
      (std::vector<std::uint64_t>{
          4096, 4096, 16384, 16384, 65536, 65536, 262144, 262144, 1048576, 1048576}));
}

TEST(LinkProbe, halves_what_does_not_grow_with_the_bytes) {
  for (const double rate : {1e6, 1e8, 1e10}) {
    LinkProbe probe(LinkProbe::Options{});
    answer_all(probe, rate);
    ASSERT_TRUE(probe.cost());
    EXPECT_NEAR(to_microseconds(probe.cost()->start), 200.0, 2.0) << rate;
    EXPECT_NEAR(rate_bits_per_second(*probe.cost()) / rate, 1.0, 0.01) << rate;
  }
}

TEST(LinkProbe, measures_a_slow_link_by_small_payloads_in_a_bounded_time) {
  for (const double rate : {1e6, 1e7, 1e8}) {
    LinkProbe probe(LinkProbe::Options{});
    EXPECT_LT(answer_all(probe, rate).spent, 600ms) << rate;
  }
  LinkProbe crawling(LinkProbe::Options{});
  EXPECT_EQ(answer_all(crawling, 1e4).sizes.size(), 1U);
  EXPECT_TRUE(crawling.cost());
}

TEST(LinkProbe, stops_when_its_time_is_spent) {
  LinkProbe probe({.time_max = 1ms});
  EXPECT_EQ(answer_all(probe, 1e9).sizes, (std::vector<std::uint64_t>{4096, 4096, 16384}));
  LinkProbe share({.time_max = 94ms});  // of eight workers, at 100 Mbit/s
  const Asked asked = answer_all(share, 1e8);
  EXPECT_LT(asked.spent, 94ms);
  EXPECT_EQ(asked.sizes.back(), 262144U);
}

TEST(LinkProbe, stays_within_the_smallest_chunks) {
  LinkProbe probe({.bytes_max = 4096, .repeats = 1});
  EXPECT_EQ(answer_all(probe, 1e9).sizes, (std::vector<std::uint64_t>{16, 64, 256, 1024, 4096}));
  LinkProbe odd({.bytes_max = 4160, .repeats = 1});
  for (const std::uint64_t bytes : answer_all(odd, 1e9).sizes)
    EXPECT_EQ(bytes % 8, 0U);
}

TEST(LinkProbe, has_no_cost_where_no_time_can_be_right) {
  LinkProbe probe(LinkProbe::Options{});
  EXPECT_FALSE(probe.cost());
  while (probe.next())
    probe.answered(0ns);
  EXPECT_FALSE(probe.cost());
}

}  // namespace
}  // namespace stagger
