#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/tuned_run.hpp"

namespace stagger {
namespace {

/// Loads from that of a link that nobody notices to one that no period hides.
double pick_load() {
  return 1e-3 * *rc::gen::inRange(1, 90'000);
}

RC_GTEST_PROP(
    PeriodTunerProperty, changes_at_most_twice_under_noise_of_five_percent, (std::uint32_t seed)) {
  TunedRun run(1 + seed % 20);
  const double load = pick_load();
  const auto noise = *rc::gen::container<std::vector<int>>(30, rc::gen::inRange(-1000, 1001));
  int changes = 0;
  for (const int each : noise) {
    if (run.evaluate(load * (1.0 + 0.05 * each / 1000.0))) ++changes;
  }
  RC_ASSERT(changes <= 2);
}

RC_GTEST_PROP(
    PeriodTunerProperty,
    changes_at_most_twice_when_noise_is_at_its_extremes,
    (std::uint32_t seed)) {
  TunedRun run(1 + seed % 20);
  const double load = pick_load();
  const auto high = *rc::gen::container<std::vector<bool>>(12, rc::gen::arbitrary<bool>());
  int changes = 0;
  for (const bool up : high) {
    for (int evaluation = 0; evaluation < 3; ++evaluation) {
      if (run.evaluate(load * (up ? 1.05 : 0.95))) ++changes;
    }
  }
  RC_ASSERT(changes <= 2);
}

}  // namespace
}  // namespace stagger
