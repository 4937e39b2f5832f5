#include "engine/synchronizer.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {

namespace {

bool keeps_center(const SyncPolicy& policy) {
  return !policy.pushes_gradients();
}

bool keeps_snapshot(const SyncPolicy& policy) {
  return !policy.pushes_gradients() && policy.rule != UpdateRule::post_step;
}

/// Whether the reply must land before the next forward reaches the group.
bool needs_reply_before_forward(const SyncPolicy& policy) {
  return policy.pushes_gradients() || policy.rule != UpdateRule::old_center;
}

// However slow the iterations: no worker waits longer for the others' moment.
constexpr Duration shared_wait_max = std::chrono::minutes(10);

}  // namespace

Synchronizer::Synchronizer(Host host, Client& client, WorkerId worker, TaskScope& scope)
    : host_(std::move(host)), client_(client), worker_(worker), scope_(scope) {}

void Synchronizer::bind(
    const std::vector<ParameterInfo>& parameters, const Plan& plan, bool momentum) {
  std::vector<LayerRange> ranges;
  ranges.reserve(plan.groups.size());
  for (const PlannedGroup& group : plan.groups)
    ranges.push_back(group.range.layers);
  const ArenaLayout layout(parameters, ranges);
  values_ = Arena(layout);
  gradients_ = Arena(layout);
  if (momentum && !plan.policy.pushes_gradients()) velocity_ = Arena(layout);
  if (keeps_center(plan.policy)) center_ = Arena(layout);
  if (keeps_snapshot(plan.policy)) snapshot_ = Arena(layout);
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    groups_.push_back(std::make_unique<GroupState>(host_.executor));
    client_.open(
        {.round = {.group = GroupId(g), .iteration = Iteration(0)},
         .plan = plan.version,
         .pushed = {},
         .center = reply_target(plan, GroupId(g))});
  }
}

Task<void> Synchronizer::adopt_center(const Plan& plan) {
  for (std::uint32_t g = 0; g < groups_.size(); ++g)
    co_await client_.await_reply(GroupId(g));
  if (keeps_center(plan.policy)) values_.assign(center_);
}

std::span<const float> Synchronizer::pushed(const Plan& plan, GroupId group) {
  if (plan.policy.pushes_gradients()) return gradients_.group(group.value());
  if (keeps_snapshot(plan.policy)) return snapshot_.group(group.value());
  return values_.group(group.value());
}

std::span<float> Synchronizer::reply_target(const Plan& plan, GroupId group) {
  return keeps_center(plan.policy) ? center_.group(group.value()) : values_.group(group.value());
}

void Synchronizer::begin_iteration(const Plan& plan, Iteration iteration) {
  iteration_ = iteration;
  for (const GroupId group : due_groups(plan, iteration)) {
    scope_.spawn("exchange_group", exchange_group(plan, {.group = group, .iteration = iteration}));
  }
}

Task<void> Synchronizer::exposed_wait(GroupId group) {
  if (!client_.reply_pending(group)) co_return;
  const TimePoint began = host_.clock.now();
  co_await client_.await_reply(group);
  exposed_ += host_.clock.now() - began;
  client_.record(Activity::wait, {.group = group, .iteration = iteration_}, began);
}

Task<void> Synchronizer::before_forward(GroupId group) {
  if (groups_[group.value()]->pull_pending) co_await exposed_wait(group);
}

void Synchronizer::apply_reply(GroupId group) {
  GroupState& state = *groups_[group.value()];
  if (!state.pull_pending) return;
  state.pull_pending = false;
  if (state.alpha == 0.0) return;  // bsp: the reply was received into the weights themselves
  const auto g = group.value();
  const auto alpha = static_cast<float>(state.alpha);
  if (state.rule == UpdateRule::post_step) {
    cpu::elastic_mix(values_.group(g), std::as_const(center_).group(g), alpha);
  } else {
    cpu::elastic_pull(
        values_.group(g),
        std::as_const(snapshot_).group(g),
        std::as_const(center_).group(g),
        alpha);
  }
}

void Synchronizer::step(const Plan& plan, GroupId group, Iteration iteration, SgdConstants sgd) {
  if (plan.policy.pushes_gradients()) return;  // the PS takes the step
  const auto g = group.value();
  const auto values = values_.group(g);
  const auto gradients = std::as_const(gradients_).group(g);
  const auto velocity = velocity_.all().empty() ? std::span<float>() : velocity_.group(g);
  if (!due(plan, group, iteration) || plan.policy.rule == UpdateRule::post_step) {
    cpu::sgd_step(values, gradients, velocity, sgd);
    return;
  }
  std::copy(values.begin(), values.end(), snapshot_.group(g).begin());
  if (plan.policy.rule == UpdateRule::fresh_center) {
    cpu::sgd_step(values, gradients, velocity, sgd);
    return;
  }
  cpu::sgd_elastic_step(
      values,
      gradients,
      velocity,
      std::as_const(center_).group(g),
      sgd,
      static_cast<float>(plan.policy.alpha));
}

void Synchronizer::open(const Plan& plan, RoundId round) {
  client_.open(
      {.round = round,
       .plan = plan.version,
       .pushed = pushed(plan, round.group),
       .center = reply_target(plan, round.group)});
}

void Synchronizer::backward_done(const Plan& plan, GroupId group, Iteration iteration) {
  if (!due(plan, group, iteration)) return;
  GroupState& state = *groups_[group.value()];
  open(plan, {.group = group, .iteration = iteration});
  state.pull_pending = needs_reply_before_forward(plan.policy);
  state.alpha = plan.policy.pushes_gradients() ? 0.0 : plan.policy.alpha;
  state.rule = plan.policy.rule;
  state.ready_at = host_.clock.now();
  client_.push_times().ready({.group = group, .iteration = iteration}, state.ready_at);
  state.ready_iteration = iteration;
  state.ready.set();
}

Task<void> Synchronizer::exchange_group(const Plan& plan, RoundId round) {
  GroupState& state = *groups_[round.group.value()];
  // Not the event alone: where compute takes no time, this may begin after the group's step.
  while (state.ready_iteration < round.iteration) {
    state.ready.reset();
    co_await state.ready.wait();
  }
  const TimePoint ready_at = state.ready_at;
  const TimePoint begin = begin_of(plan, round, ready_at);
  co_await await_turn(plan, round, begin);
  client_.record(Activity::turn, round, ready_at);
  co_await client_.push(round.group);
  const SlotWindow& slot = plan.groups[round.group.value()].slot;
  if (!has_slots(plan.admission) || slot.slot <= Duration{0}) co_return;
  const TimePoint end = begin + slot.slot;
  if (host_.clock.now() > end && overrun_.size() < Heartbeat::samples_max) {
    overrun_.push_back(host_.clock.now() - end);
  }
}

/// When the group may be pushed: at once without slots. A shared slot may have begun before the
/// group is ready.
TimePoint Synchronizer::begin_of(const Plan& plan, RoundId round, TimePoint ready_at) const {
  if (!has_slots(plan.admission)) return ready_at;
  const SlotWindow& slot = plan.groups[round.group.value()].slot;
  const Duration before = slot_position(plan, round, worker_) * slot.slot;
  const TimePoint local = ready_at + slot.delay + before;
  if (plan.slot_clock == SlotClock::local) return local;
  const auto common = client_.common_start(round.iteration);
  if (!common) return local;
  // A reply is a period late at most: nobody is further ahead of the last worker.
  const Duration wait_max =
      std::min(std::max(slot.window, plan.policy.period * common->iteration_time), shared_wait_max);
  return slot_begin(local, common->at + slot.current + before, wait_max);
}

Task<void> Synchronizer::await_turn(const Plan& plan, RoundId round, TimePoint begin) {
  if (has_turns(plan.admission)) {
    const Duration wait = std::max(begin - host_.clock.now(), Duration{0});
    co_await client_.await_turn(round.group, wait);
  } else {
    co_await host_.clock.sleep_until(begin);
  }
  // An idle link is given before the slot: that is not late.
  if (has_slots(plan.admission)) {
    note_late(std::max(host_.clock.now() - begin, Duration{0}));
  }
}

void Synchronizer::note_late(Duration lateness) {
  lateness_sketch_.record(to_seconds(lateness));
  if (lateness_.size() < Heartbeat::samples_max) lateness_.push_back(lateness);
}

Task<void> Synchronizer::settle() {
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    co_await exposed_wait(GroupId(g));
    apply_reply(GroupId(g));
  }
}

Task<void> Synchronizer::final_round(const Plan& plan, Iteration last) {
  if (plan.admission == Admission::slots) {
    // All workers end at about the same time: each sends its whole replica in a turn as long as its
    // slots of a period.
    Duration turn{0};
    for (const PlannedGroup& group : plan.groups)
      turn += group.slot.slot;
    co_await host_.clock.sleep_until(host_.clock.now() + worker_.value() * turn);
  }
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const GroupId group(g);
    if (keeps_snapshot(plan.policy)) {
      const auto values = values_.group(g);
      std::copy(values.begin(), values.end(), snapshot_.group(g).begin());
    }
    open(plan, {.group = group, .iteration = last.next()});
    if (has_turns(plan.admission)) co_await client_.await_turn(group, Duration{0});
    co_await client_.push(group);
  }
  for (std::uint32_t g = 0; g < groups_.size(); ++g)
    co_await client_.await_reply(GroupId(g));
}

}  // namespace stagger
