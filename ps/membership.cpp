#include "ps/membership.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "observability/check.hpp"

namespace stagger {

namespace {

bool free_to_take(Membership::State state) {
  return state == Membership::State::expected || state == Membership::State::silent ||
         state == Membership::State::gone || state == Membership::State::left;
}

}  // namespace

Membership::Membership(Options options) : options_(options), members_(options.world) {
  CHECK(options.world > 0, "a job without workers");
}

Result<WorkerId> Membership::join(std::int32_t rank, const std::string& address, TimePoint now) {
  if (rank < -1 || rank >= static_cast<std::int32_t>(members_.size())) {
    return Error{
        .code = Errc::refused,
        .detail = fmt::format(
            "rank {} does not exist: the job has ranks 0..{}", rank, members_.size() - 1)};
  }
  if (rank == -1) {
    const auto found = std::find_if(members_.begin(), members_.end(), [](const Member& member) {
      return free_to_take(member.state);
    });
    if (found == members_.end()) {
      return Error{
          .code = Errc::refused,
          .detail = fmt::format("all {} ranks are taken by live workers", members_.size())};
    }
    rank = static_cast<std::int32_t>(found - members_.begin());
  }
  const WorkerId worker(static_cast<std::uint32_t>(rank));
  Member& member = at(worker);
  if (!free_to_take(member.state)) {
    return Error{
        .code = Errc::refused,
        .detail = fmt::format(
            "rank {} is held by the live worker at {}; {} cannot take it. Start each worker with a "
            "rank "
            "of its own",
            rank,
            member.address,
            address)};
  }
  member = Member{
      .state = State::joined,
      .incarnation = Incarnation(++incarnations_),
      .address = address,
      .heard_at = now,
      .joins_at = Iteration(~std::uint64_t{0}),
      .reason = {}};
  return worker;
}

void Membership::activate(WorkerId worker, Iteration joins_at) {
  Member& member = at(worker);
  CHECK(member.state == State::joined, "activated without having joined", worker);
  member.state = State::active;
  member.joins_at = joins_at;
}

void Membership::heard(WorkerId worker, Incarnation incarnation, TimePoint now) {
  Member& member = at(worker);
  if (member.incarnation == incarnation) member.heard_at = now;
}

void Membership::disconnected(
    WorkerId worker, Incarnation incarnation, const std::string& reason, TimePoint now) {
  Member& member = at(worker);
  if (member.incarnation != incarnation)
    return;  // a former self's connection; the rank has moved on
  if (member.state == State::joined) {
    member.state = State::expected;
    member.reason = reason;
  } else if (member.state == State::active) {
    member.reason = reason;
    member.state = State::silent;
    member.heard_at = std::min(member.heard_at, now);
  }
}

void Membership::leave(WorkerId worker, const std::string& reason) {
  at(worker).state = State::left;
  at(worker).reason = reason;
}

std::vector<WorkerId> Membership::evaluate(TimePoint now) {
  std::vector<WorkerId> newly_gone;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.state != State::active && member.state != State::silent) continue;
    if (now - member.heard_at < options_.worker_max) continue;
    if (member.state == State::active) {
      member.reason = fmt::format("silent for {:.1f} s", to_seconds(now - member.heard_at));
    }
    member.state = State::gone;
    newly_gone.emplace_back(rank);
  }
  return newly_gone;
}

TimePoint Membership::next_evaluation() const {
  TimePoint next = time_point_max;
  for (const Member& member : members_) {
    if (member.state == State::active || member.state == State::silent) {
      next = std::min(next, member.heard_at + options_.worker_max);
    }
  }
  return next;
}

bool Membership::absent(WorkerId worker, Iteration iteration) const {
  const Member& member = members_.at(worker.value());
  switch (member.state) {
    case State::active:
    case State::silent:
      return iteration < member.joins_at;
    case State::expected:
    case State::joined:
    case State::gone:
    case State::left:
      return true;
  }
  return true;
}

std::vector<WorkerId> Membership::in_state(State state) const {
  std::vector<WorkerId> workers;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].state == state) workers.emplace_back(rank);
  }
  return workers;
}

bool Membership::all_joined() const {
  return std::none_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.state == State::expected;
  });
}

bool Membership::all_ended() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.state == State::gone || member.state == State::left;
  });
}

std::string_view to_string(Membership::State state) {
  switch (state) {
    case Membership::State::expected:
      return "expected";
    case Membership::State::joined:
      return "joined";
    case Membership::State::active:
      return "active";
    case Membership::State::silent:
      return "silent";
    case Membership::State::gone:
      return "gone";
    case Membership::State::left:
      return "left";
  }
  return "unknown";
}

}  // namespace stagger
