#include "observability/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace stagger {

namespace {

double exact_quantile(std::vector<double> samples, double p) {
  std::sort(samples.begin(), samples.end());
  const double rank = std::max(1.0, std::ceil(p * static_cast<double>(samples.size())));
  return samples[static_cast<std::size_t>(rank) - 1];
}

TEST(QuantileSketch, is_within_its_relative_error_over_eleven_decades) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-6.9, 4.9);
  std::vector<double> samples;
  QuantileSketch sketch;
  for (int i = 0; i < 20000; ++i) {
    samples.push_back(std::pow(10.0, exponent(random)));
    sketch.record(samples.back());
  }
  for (const double p : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact = exact_quantile(samples, p);
    EXPECT_NEAR(sketch.quantile(p), exact, exact * QuantileSketch::relative_error * (1.0 + 1e-6))
        << "p = " << p;
  }
}

TEST(QuantileSketch, without_samples_every_quantile_is_zero) {
  const QuantileSketch sketch;
  EXPECT_EQ(sketch.count(), 0U);
  EXPECT_EQ(sketch.quantile(0.5), 0.0);
  EXPECT_TRUE(sketch.counts().empty());
}

TEST(QuantileSketch, negative_and_tiny_count_as_zero_and_nan_not_at_all) {
  QuantileSketch sketch;
  sketch.record(-3.0);
  sketch.record(1e-9);
  sketch.record(0.0);
  sketch.record(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(sketch.count(), 3U);
  EXPECT_EQ(sketch.quantile(1.0), 0.0);
}

TEST(QuantileSketch, durations_beyond_the_range_count_as_its_end) {
  QuantileSketch sketch;
  sketch.record(std::numeric_limits<double>::infinity());
  sketch.record(1e30);
  EXPECT_EQ(sketch.count(), 2U);
  EXPECT_NEAR(
      sketch.quantile(1.0), QuantileSketch::seconds_max, QuantileSketch::seconds_max * 0.01);
  EXPECT_LE(sketch.counts().size(), QuantileSketch::buckets_max());
}

TEST(QuantileSketch, merging_equals_recording_together) {
  QuantileSketch left;
  QuantileSketch right;
  QuantileSketch together;
  for (int i = 1; i <= 1000; ++i) {
    const double seconds = 1e-5 * i * i;
    (i % 3 == 0 ? left : right).record(seconds);
    together.record(seconds);
  }
  left.merge(right);
  EXPECT_EQ(left, together);
}

TEST(QuantileSketch, survives_the_journey_as_counts) {
  QuantileSketch sketch;
  for (int i = 0; i < 100; ++i)
    sketch.record(0.001 * i);
  const auto copy = QuantileSketch::from_counts(sketch.counts()).value_or(QuantileSketch{});
  EXPECT_EQ(copy, sketch);
  EXPECT_EQ(copy.count(), 100U);
}

TEST(QuantileSketch, an_empty_tail_of_counts_does_not_matter) {
  QuantileSketch sketch;
  sketch.record(0.5);
  std::vector<std::uint64_t> counts = sketch.counts();
  counts.resize(QuantileSketch::buckets_max(), 0);
  const auto copy = QuantileSketch::from_counts(counts).value_or(QuantileSketch{});
  EXPECT_EQ(copy, sketch);
}

TEST(QuantileSketch, refuses_more_counts_than_buckets) {
  const std::vector<std::uint64_t> counts(QuantileSketch::buckets_max() + 1, 0);
  EXPECT_FALSE(QuantileSketch::from_counts(counts).has_value());
}

TEST(QuantileSketch, refuses_counts_whose_sum_overflows) {
  const std::vector<std::uint64_t> counts{std::numeric_limits<std::uint64_t>::max(), 1};
  EXPECT_FALSE(QuantileSketch::from_counts(counts).has_value());
}

TEST(QuantileSketch, merging_saturates) {
  const std::vector<std::uint64_t> counts{std::numeric_limits<std::uint64_t>::max()};
  auto sketch = QuantileSketch::from_counts(counts).value_or(QuantileSketch{});
  sketch.merge(sketch);
  EXPECT_EQ(sketch.count(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(sketch.quantile(0.5), 0.0);
}

}  // namespace

}  // namespace stagger
