#pragma once

#include <map>
#include <optional>
#include <vector>

#include "net/time.hpp"
#include "ps/ids.hpp"

namespace stagger {

/// How an iteration's compute has moved away from the profile while a run goes on. Pure.
class ComputeWatch {
 public:
  /// What the profile says that one iteration of each worker takes.
  explicit ComputeWatch(std::map<WorkerId, Duration> profiled) : profiled_(std::move(profiled)) {}

  /// So much compute since the worker's start, and so far has it come. A worker that starts anew,
  /// or says what cannot be, begins a new interval.
  void heard(WorkerId worker, Iteration finished, Duration compute);

  /// Whether each of them has finished an iteration since take().
  bool fresh(const std::vector<WorkerId>& workers) const;

  /// Compute of an iteration since the last take(), over that of the profile: the lower median of
  /// the workers. None while nobody has finished one. The next interval begins.
  std::optional<double> take();

 private:
  struct Interval {
    Iteration from;
    Duration compute_from{0};
    Iteration until;
    Duration compute{0};
  };

  std::map<WorkerId, Duration> profiled_;
  std::map<WorkerId, Interval> intervals_;
};

}  // namespace stagger
