#pragma once

#include "net/time.hpp"

namespace stagger {

/// Until when work rests that shall take its nominal time, so that errors of waking up do not add
/// up: what one piece of work took too long, the next ones take less.
///
/// For:     ThreadCompute. Pure; moments are given.
///
/// Work that follows within `gap_max` of the last one's end makes up for it; after a longer gap
/// compute stood still for something else, which a delay of ours did not change.
class Pacer {
 public:
  static constexpr Duration gap_max{1'000'000};  ///< 1 ms
  static constexpr Duration debt_max{
      100'000'000};  ///< 100 ms; a stopped process catches up on no more

  /// Work that began at `began` is done at `now`; when it may count as ended. Not after `now`: at
  /// once.
  TimePoint end_of(TimePoint began, Duration nominal, TimePoint now);

  /// The work under way counted as ended at `now`.
  void ended(TimePoint now);

 private:
  TimePoint last_;  ///< end of the last work
  TimePoint end_;   ///< of the work under way, as wanted
  bool rests_ = false;
  Duration debt_{0};
};

}  // namespace stagger
