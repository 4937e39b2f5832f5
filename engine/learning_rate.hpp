#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stagger {

enum class LearningRateKind : std::uint8_t { constant, step, cosine };

std::string_view to_string(LearningRateKind kind);
std::optional<LearningRateKind> parse_learning_rate_kind(std::string_view text);

/// Learning rate by iteration. A value; pure.
struct LearningRateSchedule {
  LearningRateKind kind = LearningRateKind::constant;
  double base = 0.05;
  std::uint64_t warmup_iterations = 0;  ///< linear from base/warmup to base, first
  std::uint64_t total_iterations = 1;   ///< cosine reaches `base*floor` here
  double floor = 0.0;                   ///< cosine: share of base at the end
  std::uint64_t step_iterations = 1;    ///< step: every so many iterations after warm-up …
  double step_factor = 0.1;             ///< … times this

  /// REQUIRES iteration >= 1.
  double at(std::uint64_t iteration) const;
};

}  // namespace stagger
