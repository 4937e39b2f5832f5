#include "engine/learning_rate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::array<std::pair<LearningRateKind, std::string_view>, 3> names{{
    {LearningRateKind::constant, "constant"},
    {LearningRateKind::step, "step"},
    {LearningRateKind::cosine, "cosine"},
}};

}  // namespace

std::string_view to_string(LearningRateKind kind) {
  for (const auto& [value, name] : names) {
    if (value == kind) return name;
  }
  CHECK(false, "no such learning rate kind", static_cast<int>(kind));
  return {};
}

std::optional<LearningRateKind> parse_learning_rate_kind(std::string_view text) {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

double LearningRateSchedule::at(std::uint64_t iteration) const {
  CHECK_LT(0U, iteration);
  if (iteration <= warmup_iterations) {
    return base * static_cast<double>(iteration) / static_cast<double>(warmup_iterations);
  }
  switch (kind) {
    case LearningRateKind::constant:
      return base;
    case LearningRateKind::step: {
      CHECK_LT(0U, step_iterations);
      const std::uint64_t steps = (iteration - warmup_iterations - 1) / step_iterations;
      return base * std::pow(step_factor, static_cast<double>(steps));
    }
    case LearningRateKind::cosine: {
      if (total_iterations <= warmup_iterations) return base;
      const double length = static_cast<double>(total_iterations - warmup_iterations);
      const double passed = static_cast<double>(iteration - warmup_iterations);
      const double share = std::min(1.0, passed / length);
      const double shape = 0.5 * (1.0 + std::cos(std::numbers::pi * share));
      return base * (floor + (1.0 - floor) * shape);
    }
  }
  CHECK(false, "no such learning rate kind", static_cast<int>(kind));
  return 0.0;
}

}  // namespace stagger
