#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ps/period_tuner.hpp"

namespace stagger {
namespace {

RC_GTEST_PROP(
    PeriodTunerProperty,
    changes_at_most_once_under_noise_of_five_percent,
    (std::uint32_t seed_period, std::uint32_t seed_load)) {
  PeriodTuner tuner(1 + seed_period % 70);
  const double load_ms = 1e-3 * (seed_load % 800'000);  // 0 to 80 iterations' compute
  const auto noise = *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(-1000, 1001));
  int changes = 0;
  for (const int each : noise) {
    const double busy = load_ms * (1.0 + 0.05 * each / 1000.0);
    if (tuner.measured(from_microseconds(1e3 * busy), 10ms)) ++changes;
  }
  RC_ASSERT(changes <= 1);
  const double load = load_ms / 10.0;
  RC_ASSERT(tuner.period() >= 64U || load / tuner.period() <= 1.0);
  RC_ASSERT(
      tuner.period() == 1 || load >= 64.0 * 0.95 || load / (tuner.period() - 1.0) >= 0.75 / 1.05);
}

RC_GTEST_PROP(
    PeriodTunerProperty,
    changes_at_most_once_when_noise_is_at_its_extremes,
    (std::uint32_t seed_period, std::uint32_t seed_load)) {
  PeriodTuner tuner(1 + seed_period % 70);
  const double load_ms = 1e-3 * (seed_load % 800'000);
  const auto high = *rc::gen::container<std::vector<bool>>(40, rc::gen::arbitrary<bool>());
  int changes = 0;
  for (const bool up : high) {
    for (int sample = 0; sample < 5; ++sample) {
      const double busy = load_ms * (up ? 1.05 : 0.95);
      if (tuner.measured(from_microseconds(1e3 * busy), 10ms)) ++changes;
    }
  }
  RC_ASSERT(changes <= 1);
}

}  // namespace
}  // namespace stagger
