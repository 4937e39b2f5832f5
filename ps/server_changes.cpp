#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "observability/check.hpp"
#include "ps/server.hpp"
#include "ps/server_change.hpp"
#include "ps/session.hpp"

// The coordinator: the start, and everything that all workers must agree on while they run.
namespace stagger {

namespace {

constexpr std::size_t changes_max = 64;

}  // namespace

std::string_view Server::Change::name(Kind kind) {
  switch (kind) {
    case Kind::period:
      return "period";
    case Kind::slots:
      return "slots";
    case Kind::stop:
      return "stop";
    case Kind::rejoin:
      return "rejoin";
  }
  return "unknown";
}

Task<void> Server::coordinate() {
  co_await await_members();
  if (options_.link_wanted && !options_.link) co_await await_link();
  if (!stop_wanted_) {
    start();
    for (const WorkerId worker : membership_.in_state(Membership::State::joined)) {
      begin_worker(worker, Iteration(1));
    }
    host_.log.info(
        "started",
        {{"workers", membership_.world()},
         {"groups", plans_.latest().groups.size()},
         {"period", plans_.latest().policy.period}});
    if (drift_) scope_.spawn("watch_drift", watch_drift());
  }
  while (started() && !membership_.all_ended() && !abandoned_) {
    if (!changes_.empty()) {
      const auto change = changes_.front();
      changes_.pop_front();
      co_await carry_out(*change);
      continue;
    }
    changed_.reset();
    co_await changed_.wait();
  }
  for (const auto& change : changes_) {
    change->outcome = Error{.code = Errc::closed, .detail = "the run has ended"};
    change->done.set();
  }
  changes_.clear();
  if (started() && !abandoned_ && membership_.in_state(Membership::State::left).empty()) {
    throw ServerFailure(
        ServerFailure::Kind::workers_lost, "every worker was lost before the end of training");
  }
}

Task<Iteration> Server::agree() {
  const auto active = membership_.in_state(Membership::State::active);
  const std::uint64_t number = agreement_.begin(active);
  for (const WorkerId worker : active)
    sessions_.at(worker)->post(Prepare{number});
  while (!agreement_.complete()) {
    changed_.reset();
    co_await changed_
        .wait();  // limited by membership: a silent worker is dropped after timeouts.worker
    if (abandoned_) agreement_.drop_all();
  }
  co_return agreement_.finish();
}

Task<void> Server::carry_out(Change& change) {
  const Iteration agreed = co_await agree();
  change.outcome = apply(change, agreed);
  change.done.set();
}

void Server::abandon() {
  abandoned_ = true;
  stop_wanted_ = true;
  changed_.set();
}

Result<Iteration> Server::apply(Change& change, Iteration agreed) {
  Commit commit{.agreement = agreement_.number(), .plan = {}, .last_iteration = {}};
  Result<Iteration> outcome = agreed;
  switch (change.kind) {
    case Change::Kind::period:
    case Change::Kind::slots: {
      auto plan = next_plan(change, agreed);
      if (!plan) {
        outcome = plan.error();
        break;
      }
      outcome = plan->first_iteration;
      plans_.add(*plan);
      commit.plan.push_back(std::move(*plan));
      metrics_.period_iterations.set(plans_.latest().policy.period);
      metrics_.plan_version.set(plans_.latest().version.value());
      break;
    }
    case Change::Kind::stop: {
      const Iteration last(std::min(agreed.value() - 1, options_.last_iteration.value()));
      options_.last_iteration = last;
      aggregator_->set_last_iteration(last);
      commit.last_iteration = last;
      outcome = last;
      break;
    }
    case Change::Kind::rejoin:
      break;
  }
  broadcast(commit);
  if (change.kind == Change::Kind::rejoin) outcome = rejoin(change.worker, agreed);
  host_.log.info(
      "change",
      {{"kind", Change::name(change.kind)},
       {"requester", change.requester},
       {"outcome", outcome ? std::to_string(outcome->value()) : describe(outcome.error())}});
  return outcome;
}

Result<Plan> Server::next_plan(const Change& change, Iteration agreed) const {
  PolicyRequest request = options_.policy;
  const Plan& current = plans_.latest();
  request.period = change.kind == Change::Kind::slots ? current.policy.period : change.period;
  const auto verdict = resolve(request);
  if (!verdict) return verdict.error();
  Plan plan = replan(current, options_.layers, verdict->policy, current.admission, options_.slots);
  plan.first_iteration = earliest_switch(agreed, current.first_iteration, current.policy.period);
  if (plan.first_iteration > options_.last_iteration) {
    return Error{
        .code = Errc::refused,
        .detail = fmt::format(
            "the change could begin at iteration {}, but training ends at {}",
            plan.first_iteration.value(),
            options_.last_iteration.value())};
  }
  return plan;
}

Result<Iteration> Server::rejoin(WorkerId worker, Iteration first) {
  const auto session = sessions_.find(worker);
  if (session == sessions_.end() || membership_.member(worker).state != Membership::State::joined) {
    return Error{.code = Errc::disconnected, .detail = "the worker went away again"};
  }
  if (first > options_.last_iteration) {
    session->second->post(Refuse{"training is about to end; there is nothing left to join"});
    membership_.leave(worker, "came back too late");
    return Error{.code = Errc::refused, .detail = "training is about to end"};
  }
  begin_worker(worker, first);
  return first;
}

void Server::begin_worker(WorkerId worker, Iteration first) {
  membership_.activate(worker, first);
  worker_metrics_.worker_up.at(worker.value()).set(1.0);
  Session& session = *sessions_.at(worker);
  session.post(Begin{plans_.plans(), first, options_.last_iteration});
  std::size_t chunks = 0;
  for (std::uint32_t g = 0; g < center_->groups(); ++g) {
    const GroupId group(g);
    for (std::uint32_t chunk = 0; chunk < center_->chunks(group); ++chunk) {
      const auto& snapshot = center_->chunk(group, chunk);
      const ChunkHead head{
          .id = {{group, Iteration(0)}, chunk},
          .plan = plans_.latest().version,
          .codec = codec_float32,
          .present = snapshot.present};
      session.hold_joining(head, snapshot);
      ++chunks;
    }
  }
  joins_.ask(worker, chunks);
  send_joining();
}

void Server::send_joining() {
  while (const auto worker = joins_.next())
    sessions_.at(*worker)->send_joining();
}

void Server::joining_sent(WorkerId worker) {
  joins_.sent(worker);
  send_joining();
}

void Server::broadcast(const Message& message) {
  for (const WorkerId worker : membership_.in_state(Membership::State::active)) {
    if (const auto found = sessions_.find(worker); found != sessions_.end()) {
      found->second->post(message);
    }
  }
}

Task<Result<Iteration>> Server::submit(std::shared_ptr<Change> change) {
  if (changes_.size() >= changes_max) {
    co_return Error{
        .code = Errc::refused, .detail = fmt::format("{} changes wait already", changes_.size())};
  }
  changes_.push_back(change);
  changed_.set();
  co_await change->done.wait();
  CHECK(change->outcome.has_value(), "a change that is done has an outcome");
  co_return *change->outcome;
}

/// Why a change to this period is not possible.
Result<void> Server::check_period(std::uint32_t period) const {
  if (!started()) return Error{.code = Errc::refused, .detail = "the run has not started yet"};
  if (membership_.all_ended()) return Error{.code = Errc::refused, .detail = "the run has ended"};
  if (plans_.latest().policy.pushes_gradients()) {
    return Error{
        .code = Errc::refused,
        .detail = "strategy bsp exchanges gradients in every iteration: its period is 1"};
  }
  PolicyRequest request = options_.policy;
  request.period = period;
  if (const auto verdict = resolve(request); !verdict) return verdict.error();
  return {};
}

Task<Result<Iteration>> Server::change_period(std::uint32_t period, std::string requester) {
  if (const auto possible = check_period(period); !possible) co_return possible.error();
  stop_following(requester);
  auto change = std::make_shared<Change>(host_.executor, Change::Kind::period);
  change->period = period;
  change->requester = std::move(requester);
  co_return co_await submit(std::move(change));
}

Task<Result<Iteration>> Server::stop(std::string requester) {
  if (!started()) {
    stop_wanted_ = true;
    changed_.set();
    co_return Iteration(0);
  }
  if (membership_.all_ended()) co_return options_.last_iteration;
  auto change = std::make_shared<Change>(host_.executor, Change::Kind::stop);
  change->requester = std::move(requester);
  co_return co_await submit(std::move(change));
}

void Server::wants_to_rejoin(WorkerId worker) {
  auto change = std::make_shared<Change>(host_.executor, Change::Kind::rejoin);
  change->worker = worker;
  change->requester = membership_.member(worker).address;
  if (changes_.size() < changes_max) {
    changes_.push_back(std::move(change));
    changed_.set();
  } else {
    sessions_.at(worker)->post(Refuse{"too many changes wait; try again"});
  }
}

}  // namespace stagger
