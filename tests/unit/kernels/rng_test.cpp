#include "kernels/rng.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

using Block = std::array<std::uint32_t, 4>;

TEST(Philox, gives_the_published_numbers) {
  // Known-answer vectors of Random123 1.09 (kat_vectors, philox4x32 10).
  EXPECT_EQ(
      philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(
      philox4x32({ones, ones, ones, ones}, {ones, ones}),
      (Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(
      philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
      (Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Fnv1a, gives_the_published_numbers_and_continues) {
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325U);
  EXPECT_EQ(fnv1a("a"), 0xAF63DC4C8601EC8CU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171F73967E8U);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

TEST(RandomSequence, repeats_for_one_seed_and_differs_for_another) {
  RandomSequence first(1, 2);
  RandomSequence same(1, 2);
  RandomSequence other_seed(2, 2);
  RandomSequence other_sequence(1, 3);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t value = first.next();
    EXPECT_EQ(value, same.next());
    equal += value == other_seed.next() ? 1 : 0;
    equal += value == other_sequence.next() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(RandomSequence, stays_below_the_bound_and_reaches_every_value_about_equally) {
  RandomSequence random(3, 0);
  constexpr std::uint32_t bound = 7;
  std::vector<int> seen(bound, 0);
  for (int i = 0; i < 7000; ++i) {
    const std::uint32_t value = random.below(bound);
    ASSERT_LT(value, bound);
    ++seen[value];
  }
  for (const int count : seen) {
    EXPECT_NEAR(count, 1000, 150);  // five standard deviations
  }
  EXPECT_EQ(random.below(1), 0U);
}

TEST(RandomSequence, gives_uniform_numbers_in_the_half_open_unit_interval) {
  RandomSequence random(4, 0);
  double total = 0.0;
  for (int i = 0; i < 10000; ++i) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    total += static_cast<double>(value);
  }
  EXPECT_NEAR(total / 10000, 0.5, 0.015);
}

}  // namespace
}  // namespace stagger
