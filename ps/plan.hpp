#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "ps/grouping.hpp"
#include "ps/ids.hpp"
#include "ps/policy.hpp"
#include "ps/slots.hpp"

namespace stagger {

struct PlannedGroup {
  GroupRange range;
  SlotWindow slot;
  std::uint32_t phase = 0;  ///< due in iterations j with j mod T == phase; below T

  bool operator==(const PlannedGroup&) const = default;
};

/// Groups, period, due table, slots, admission mode, all under one version number. A value:
/// immutable once committed.
struct Plan {
  PlanVersion version{1};
  Iteration first_iteration{1};  ///< the first that uses it
  SyncPolicy policy;
  Admission admission = Admission::slots;
  SlotRule slot_rule = SlotRule::paper;
  SlotClock slot_clock = SlotClock::local;
  std::vector<PlannedGroup> groups;  ///< index = GroupId

  bool operator==(const Plan&) const = default;
};

/// Gives each group its phase: by policy.phase and policy.period (ps/phases.hpp).
void set_phases(Plan& plan);

/// Whether the group takes part in the iteration: j mod T is its phase. REQUIRES iteration >= 1.
bool due(const Plan& plan, GroupId group, Iteration iteration);

/// Groups due in an iteration, in group order.
std::vector<GroupId> due_groups(const Plan& plan, Iteration iteration);

/// The first iteration >= `from` in which the group is due under this plan alone.
Iteration next_due(const Plan& plan, GroupId group, Iteration from);

/// Which of a round's slots is the worker's, from 0: its rank under slot rule `paper`; under
/// `measured` (rank + floor(j/T) + g) mod P, so that nobody is always last.
std::uint32_t slot_position(const Plan& plan, RoundId round, WorkerId worker);

/// Workers in the order in which a round sums them: that of their positions.
std::vector<WorkerId> round_order(const Plan& plan, RoundId round);

/// Payload bytes that one worker pushes from iteration `first` to `last` under this plan.
std::uint64_t planned_push_bytes(const Plan& plan, Iteration first, Iteration last);

/// The plans of a run, by the iteration from which each is used. Both ends of the wire keep one, so
/// that no round mixes two.
class PlanHistory {
 public:
  /// REQUIRES a later version and a first iteration that is not before the last plan's.
  void add(Plan plan);

  bool empty() const { return plans_.empty(); }

  const Plan& at(Iteration iteration) const;

  const Plan& latest() const { return plans_.back(); }

  std::vector<Plan> plans() const { return {plans_.begin(), plans_.end()}; }

 private:
  std::deque<Plan> plans_;  // references stay valid while later plans are added
};

}  // namespace stagger
