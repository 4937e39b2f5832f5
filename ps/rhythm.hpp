#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "ps/clock_offset.hpp"
#include "ps/ids.hpp"

/// From which moment all workers count the slots of an iteration. Pure.
namespace stagger {

/// When a worker's backward of an iteration began, on the PS's clock.
struct BackwardStart {
  Iteration iteration;
  PsTime at;

  bool operator==(const BackwardStart&) const = default;
};

/// When backward begins at the worker that is last, from an iteration on.
struct Rhythm {
  Iteration iteration;
  PsTime start;
  Duration iteration_time{0};  ///< of those that follow

  bool operator==(const Rhythm&) const = default;
};

/// Longest time of an iteration that a rhythm has.
constexpr Duration rhythm_time_max = std::chrono::hours(1);

/// What the PS makes of the workers' reports: the next iterations' starts, as they go on at the
/// pace of the last ones, and as much later as that was lately wrong.
///
/// For:     Server. Owner: Server. Thread: any one. Cancel: nothing. Failure: none; reports that
/// cannot be are left out.
class RhythmFinder {
 public:
  /// A worker has begun this backward.
  void report(WorkerId worker, const BackwardStart& start, PsTime now);

  /// The worker is gone, or a new one of its rank has come.
  void forget(WorkerId worker) { workers_.erase(worker); }

  /// From an iteration on that none has begun, so that all count from the same moment. None before
  /// a worker has reported twice.
  std::optional<Rhythm> next(PsTime now) const;

 private:
  struct Reported {
    void add(const BackwardStart& start);

    BackwardStart last;
    Duration iteration_time{0};  ///< smoothed; 0: not known yet
    Duration late{0};            ///< how much later than foretold it began lately, at most
  };

  std::map<WorkerId, Reported> workers_;
};

/// What a worker has heard: the rhythm of each iteration is the last that began before it.
class HeardRhythms {
 public:
  void heard(const Rhythm& rhythm);

  /// The rhythm, moved to this iteration. None: none was heard for it, or too long ago.
  std::optional<Rhythm> at(Iteration iteration) const;

 private:
  std::deque<Rhythm> rhythms_;  ///< by iteration
};

/// When a slot begins that all count from one moment: `common`, unless that is so much later than
/// `local`, which is the worker's own count, that it cannot be meant. It may have passed.
constexpr TimePoint slot_begin(TimePoint local, TimePoint common, Duration wait_max) {
  return common > deadline_after(local, wait_max) ? local : common;
}

}  // namespace stagger
