#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/time.hpp"

namespace stagger {

/// Proposes a new T when what is measured drifts away from what T was chosen for, and keeps still
/// otherwise. Pure.
///
/// The link's utilisation under T is busy / (T * compute). A new T is proposed when the median of
/// the last samples says that the utilisation is above `high`, or that it would be below `low` with
/// T - 1; it is the smallest whose utilisation is at most `target`, from 1 to `period_max`.
///
/// The bounds are far enough apart that samples within 5 % of a constant load make at most one
/// proposal: after it the utilisation is at most target * 1.05 / 0.95 < high, and with T - 1 more
/// than target * 0.95 / 1.05 > low.
class PeriodTuner {
 public:
  struct Options {
    double low = 0.75;
    double target = 0.85;
    double high = 0.95;
    std::uint32_t period_max = 64;
    std::size_t samples = 5;  ///< for a median; none is proposed before
  };

  /// REQUIRES period >= 1, low < target < high, period_max >= 1, samples >= 1.
  PeriodTuner(std::uint32_t period, const Options& options);

  explicit PeriodTuner(std::uint32_t period) : PeriodTuner(period, Options()) {}

  /// One measurement: how long the link takes to carry every group of every worker once, and an
  /// iteration's compute. The T to change to, if it is time; from then on it counts as changed, and
  /// samples are taken anew.
  std::optional<std::uint32_t> measured(Duration busy, Duration compute);

  std::uint32_t period() const { return period_; }

 private:
  double median() const;
  std::uint32_t smallest_for(double load) const;

  Options options_;
  std::uint32_t period_;
  std::vector<double> loads_;  ///< busy / compute; a ring
  std::size_t next_ = 0;
};

}  // namespace stagger
