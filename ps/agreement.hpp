#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ps/ids.hpp"

namespace stagger {

/// How all workers agree on the first iteration of a change (a new plan, a stop, a worker that
/// joins). Pure.
///
/// Two phases. Prepare: each worker promises not to begin an iteration after its `hold` before it
/// hears again. When all have promised, the change takes effect one past the largest hold: nobody
/// has begun that iteration, so no round mixes two plans. Commit tells everybody and lifts the
/// holds. A worker that dies in the middle is dropped from those awaited; its promise is not needed
/// any more. One agreement is under way at a time.
class Agreement {
 public:
  /// Begins the next agreement among `workers`. REQUIRES none under way.
  std::uint64_t begin(const std::vector<WorkerId>& workers);

  /// Stale or foreign promises are ignored.
  void promise(std::uint64_t agreement, WorkerId worker, Iteration hold);

  void drop(WorkerId worker) { awaited_.erase(worker); }

  void drop_all() { awaited_.clear(); }

  bool under_way() const { return under_way_; }

  bool complete() const { return under_way_ && awaited_.empty(); }

  std::vector<WorkerId> awaited() const { return {awaited_.begin(), awaited_.end()}; }

  std::uint64_t number() const { return number_; }

  /// Ends it: the first iteration that nobody has promised to be allowed to begin. REQUIRES
  /// complete().
  Iteration finish();

 private:
  std::uint64_t number_ = 0;
  bool under_way_ = false;
  std::set<WorkerId> awaited_;
  Iteration hold_max_;
};

/// The earliest iteration at which a next plan may take over: every group is due at least once in
/// any T_old + T_new iterations only if a further switch waits until T iterations after the last
/// one.
Iteration earliest_switch(Iteration agreed, Iteration last_switch, std::uint32_t period);

}  // namespace stagger
