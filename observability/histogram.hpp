#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stagger {

/// Quantiles of durations in bounded memory: buckets whose limits grow by a constant factor.
///
/// For:     slot lateness, exchange times and iteration times in reports; workers send counts(),
/// servers merge them. Owner:   whoever measures; a value that copies and compares. Thread:  one at
/// a time. Failure: none for numbers; from_counts() refuses what no sketch could have sent.
///
/// A quantile is within `relative_error` of the true sample for samples from `seconds_min` to
/// `seconds_max`. Shorter ones (an early slot too: negative lateness is no lateness) count as 0,
/// longer ones as `seconds_max`, NaN not at all.
class QuantileSketch {
 public:
  static constexpr double relative_error = 0.01;
  static constexpr double seconds_min = 1e-7;
  static constexpr double seconds_max = 1e5;

  void record(double seconds);

  /// The smallest recorded value that at least the share `p` of all samples does not exceed; 0
  /// without samples. REQUIRES 0 <= p <= 1.
  double quantile(double p) const;

  std::uint64_t count() const { return count_; }

  /// Sums saturate instead of wrapping: counts can come from a peer.
  void merge(const QuantileSketch& other);

  /// Samples per bucket, shortest durations first, without the empty tail.
  const std::vector<std::uint64_t>& counts() const { return counts_; }

  /// Nothing when there are more counts than buckets, or their sum overflows.
  static std::optional<QuantileSketch> from_counts(std::span<const std::uint64_t> counts);

  /// The most counts that counts() can hold.
  static std::size_t buckets_max();

  bool operator==(const QuantileSketch&) const = default;

 private:
  std::vector<std::uint64_t> counts_;  ///< never ends in 0, so that equal samples compare equal
  std::uint64_t count_ = 0;
};

}  // namespace stagger
