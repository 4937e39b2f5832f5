#include "ps/period_tuner.hpp"

#include <algorithm>
#include <cmath>

#include "observability/check.hpp"

namespace stagger {

PeriodTuner::PeriodTuner(std::uint32_t period, const Options& options)
    : options_(options), period_(period) {
  CHECK_LE(1U, period);
  CHECK_LE(1U, options.period_max);
  CHECK_LE(1U, options.samples);
  CHECK(0 < options.low && options.low < options.target && options.target < options.high);
}

std::optional<std::uint32_t> PeriodTuner::measured(Duration busy, Duration compute) {
  // A compute that takes no time is one that a clock cannot see.
  const double load = to_seconds(busy) / to_seconds(std::max(compute, Duration{1}));
  if (loads_.size() < options_.samples) {
    loads_.push_back(load);
  } else {
    loads_[next_] = load;
    next_ = (next_ + 1) % loads_.size();
  }
  if (loads_.size() < options_.samples) return std::nullopt;
  const double typical = median();
  const bool above = typical > options_.high * period_;
  const bool below = period_ > 1 && typical < options_.low * (period_ - 1.0);
  if (!above && !below) return std::nullopt;
  const std::uint32_t proposal = smallest_for(typical);
  if (above ? proposal <= period_ : proposal >= period_) return std::nullopt;
  period_ = proposal;
  loads_.clear();
  next_ = 0;
  return proposal;
}

double PeriodTuner::median() const {
  std::vector<double> sorted = loads_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

std::uint32_t PeriodTuner::smallest_for(double load) const {
  const double period = std::ceil(load / options_.target);
  return static_cast<std::uint32_t>(
      std::clamp(period, 1.0, static_cast<double>(options_.period_max)));
}

}  // namespace stagger
