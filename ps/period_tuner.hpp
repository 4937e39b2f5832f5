#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ps/period_choice.hpp"

namespace stagger {

/// Proposes another T when what is measured has drifted away from what T was chosen for, and keeps
/// still otherwise. Pure.
///
/// Another T is due when
///
///   - the present one no longer hides communication, and another does, or makes the predicted
///     iteration shorter by more than `gain`; or
///   - the present one does, and a smaller one would on a link that costs `spare` times as much;
///
/// and when that was so, in the same direction, in `evaluations` evaluations in a row. What is
/// proposed is chosen for a link that costs `margin` times as much. The three bounds lie so that
/// measurements within 5 % of a constant load make one change at most: after it the proposed T
/// hides at 0.95 * margin > 1.05, and no smaller one at 0.95 * spare > 1.05 * margin.
class PeriodTuner {
 public:
  struct Options {
    double gain = 0.1;
    double margin = 1.12;
    double spare = 1.25;
    unsigned evaluations = 3;
  };

  /// The plan in force, and what is measured.
  struct Situation {
    const PolicyRequest& policy;
    const Plan& plan;
    std::span<const LayerProfile> layers;
    const SlotOptions& slots;
    LinkCost link;
  };

  explicit PeriodTuner(const Options& options) : options_(options) {}

  PeriodTuner() : PeriodTuner(Options()) {}

  /// The T to change to, if it is time; the count begins again then.
  std::optional<PeriodChoice> evaluated(const Situation& situation);

 private:
  std::optional<PeriodChoice> wish(const Situation& situation) const;

  Options options_;
  unsigned in_a_row_ = 0;
  bool upwards_ = false;
};

}  // namespace stagger
