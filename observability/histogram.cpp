#include "observability/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "observability/check.hpp"

namespace stagger {

namespace {

// Bucket 0 is "less than seconds_min"; bucket i > 0 begins at seconds_min * growth^(i-1). With this
// growth the middle of a bucket, 2 * begin * growth / (1 + growth), is within relative_error of
// both its ends.
constexpr double growth =
    (1.0 + QuantileSketch::relative_error) / (1.0 - QuantileSketch::relative_error);

std::size_t bucket_of(double seconds) {
  if (seconds < QuantileSketch::seconds_min) return 0;
  const double bounded = std::min(seconds, QuantileSketch::seconds_max);
  const double steps = std::log(bounded / QuantileSketch::seconds_min) / std::log(growth);
  return 1 + static_cast<std::size_t>(std::max(steps, 0.0));
}

double middle_of(std::size_t bucket) {
  if (bucket == 0) return 0.0;
  const double begin =
      QuantileSketch::seconds_min * std::pow(growth, static_cast<double>(bucket - 1));
  return std::min(begin * 2.0 * growth / (1.0 + growth), QuantileSketch::seconds_max);
}

std::uint64_t saturating_sum(std::uint64_t left, std::uint64_t right) {
  return left > std::numeric_limits<std::uint64_t>::max() - right
             ? std::numeric_limits<std::uint64_t>::max()
             : left + right;
}

}  // namespace

void QuantileSketch::record(double seconds) {
  if (std::isnan(seconds)) return;
  const std::size_t bucket = bucket_of(seconds);
  if (bucket >= counts_.size()) counts_.resize(bucket + 1, 0);
  counts_[bucket] = saturating_sum(counts_[bucket], 1);
  count_ = saturating_sum(count_, 1);
}

double QuantileSketch::quantile(double p) const {
  CHECK(p >= 0.0 && p <= 1.0, "quantile of", p);
  if (count_ == 0) return 0.0;
  const double wanted = std::ceil(p * static_cast<double>(count_));
  const auto rank = std::clamp(wanted, 1.0, static_cast<double>(count_));
  double passed = 0.0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    passed += static_cast<double>(counts_[bucket]);
    if (counts_[bucket] > 0 && passed >= rank) return middle_of(bucket);
  }
  return middle_of(counts_.size() - 1);
}

void QuantileSketch::merge(const QuantileSketch& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size(), 0);
  for (std::size_t bucket = 0; bucket < other.counts_.size(); ++bucket) {
    counts_[bucket] = saturating_sum(counts_[bucket], other.counts_[bucket]);
  }
  count_ = saturating_sum(count_, other.count_);
}

std::optional<QuantileSketch> QuantileSketch::from_counts(std::span<const std::uint64_t> counts) {
  if (counts.size() > buckets_max()) return std::nullopt;
  QuantileSketch sketch;
  for (const std::uint64_t samples : counts) {
    if (samples > std::numeric_limits<std::uint64_t>::max() - sketch.count_) return std::nullopt;
    sketch.count_ += samples;
  }
  std::size_t used = counts.size();
  while (used > 0 && counts[used - 1] == 0)
    --used;
  sketch.counts_.assign(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(used));
  return sketch;
}

std::size_t QuantileSketch::buckets_max() {
  return bucket_of(seconds_max) + 1;
}

}  // namespace stagger
