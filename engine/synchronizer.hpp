#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/elastic.hpp"
#include "net/event.hpp"
#include "net/host.hpp"
#include "net/scope.hpp"
#include "observability/histogram.hpp"
#include "ps/client.hpp"
#include "ps/plan.hpp"
#include "tensor/arena.hpp"

namespace stagger {

/// Keeps one replica together with the center: what is pushed when, what must have landed before
/// compute goes on.
///
/// For:     Worker, which calls it around each group's forward and backward.
/// Owner:   Worker. Thread: the loop, except step() and apply_reply(), which run on the compute
/// thread. Cancel:  exchanges run in the worker's scope. Failure: ClientFailure through that scope.
///
/// Memory beside weights and gradients: velocity (momentum), center (elastic rules), snapshot
/// (old_center and fresh_center: what is on the wire is the w before the step, which lives until
/// its reply has come).
class Synchronizer {
 public:
  Synchronizer(Host host, Client& client, WorkerId worker, TaskScope& scope);

  /// Allocates for the plan's groups and opens the reception of the joining center.
  void bind(const std::vector<ParameterInfo>& parameters, const Plan& plan, bool momentum);

  /// The joining center has come: every replica starts from it.
  Task<void> adopt_center(const Plan& plan);

  Arena& values() { return values_; }

  Arena& gradients() { return gradients_; }

  /// Starts the communication tasks of the groups that are due; each awaits its group's backward.
  void begin_iteration(const Plan& plan, Iteration iteration);

  /// Whether a reply must land, and be applied, before this group's forward (fresh_center,
  /// post_step, bsp).
  bool reply_before_forward(GroupId group) const { return groups_[group.value()]->pull_pending; }

  /// Waits for that reply.
  Task<void> before_forward(GroupId group);

  /// Compute thread, after before_forward(): the elastic step of a reply that has landed.
  void apply_reply(GroupId group);

  /// old_center: the group is due again and the reply of its last round has not come: it is a whole
  /// period late.
  bool reply_late(const Plan& plan, GroupId group, Iteration iteration) const {
    return client_.reply_pending(group) && due(plan, group, iteration);
  }

  /// Waits for the late reply.
  Task<void> before_step(GroupId group) { return exposed_wait(group); }

  /// Compute thread, right after the group's backward: snapshot if due, and the local (and elastic)
  /// step.
  void step(const Plan& plan, GroupId group, Iteration iteration, SgdConstants sgd);

  /// The group's backward and step are done: resumes the communication task that awaits it.
  void backward_done(const Plan& plan, GroupId group, Iteration iteration);

  /// Waits for all replies, and takes their elastic steps.
  Task<void> settle();

  /// Exchanges every group once more.
  Task<void> final_round(const Plan& plan, Iteration last);

  Duration exposed() const { return exposed_; }

  void add_exposed(Duration waited) { exposed_ += waited; }

  std::vector<Duration> take_lateness() { return std::exchange(lateness_, {}); }

  std::vector<Duration> take_overrun() { return std::exchange(overrun_, {}); }

  const QuantileSketch& lateness_sketch() const { return lateness_sketch_; }

 private:
  struct GroupState {
    explicit GroupState(Executor executor) : ready(std::move(executor)) {}

    Event ready;                ///< moved on
    Iteration ready_iteration;  ///< the last in which the group was due and its step is done
    TimePoint ready_at;
    bool pull_pending = false;  ///< a reply will have to be applied before the next forward
    double alpha = 0.0;         ///< of that reply's plan
    UpdateRule rule = UpdateRule::old_center;
  };

  Task<void> exchange_group(const Plan& plan, RoundId round);
  Task<void> await_turn(const Plan& plan, RoundId round, TimePoint begin);
  TimePoint begin_of(const Plan& plan, RoundId round, TimePoint ready_at) const;
  Task<void> exposed_wait(GroupId group);
  void open(const Plan& plan, RoundId round);
  std::span<const float> pushed(const Plan& plan, GroupId group);
  std::span<float> reply_target(const Plan& plan, GroupId group);
  void note_late(Duration lateness);

  Host host_;
  Client& client_;
  WorkerId worker_;
  TaskScope& scope_;
  Arena values_;
  Arena gradients_;
  Arena velocity_;
  Arena center_;
  Arena snapshot_;
  std::vector<std::unique_ptr<GroupState>> groups_;
  Iteration iteration_;  ///< under way
  Duration exposed_{0};
  std::vector<Duration> lateness_;
  std::vector<Duration> overrun_;
  QuantileSketch lateness_sketch_;
};

}  // namespace stagger
