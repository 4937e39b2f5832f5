#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "ps/server.hpp"
#include "ps/session.hpp"

// Who may push when: the turns of admission `grants`, whose reply is sent now, and the moment that
// slots count from.
namespace stagger {

namespace {

// No plan has a slot this far ahead.
constexpr Duration wait_max = std::chrono::hours(1);

Error refusal(const RoundId& round, const std::string& why) {
  return Error{
      .code = Errc::refused,
      .detail = fmt::format(
          "announcement of group {} iteration {}: {}",
          round.group.value(),
          round.iteration.value(),
          why)};
}

}  // namespace

Result<void> Server::announced(WorkerId worker, const Announce& announce) {
  const RoundId& round = announce.round;
  if (!started()) return refusal(round, "before begin");
  if (round.group.value() >= center_->groups()) return refusal(round, "no such group");
  if (round.iteration.value() < 1 || round.iteration > options_.last_iteration.next()) {
    return refusal(round, "no such iteration");
  }
  if (announce.wait < Duration{0} || announce.wait > wait_max) {
    return refusal(round, fmt::format("a slot in {:g} s", to_seconds(announce.wait)));
  }
  TurnRank rank = turn_rank(worker, round);
  const bool slotted = plans_.at(round.iteration).admission == Admission::slots_grants;
  if (slotted) rank.slot = host_.clock.now() + announce.wait;
  const std::uint64_t bytes = plans_.at(round.iteration).groups[round.group.value()].range.bytes;
  push_turns_.ask({.worker = worker, .round = round, .chunk = 0}, rank, bytes);
  hand_out_turns();
  return {};
}

TurnRank Server::turn_rank(WorkerId worker, RoundId round) const {
  const Plan& plan = plans_.at(round.iteration);
  return {
      .slot = {},
      .iteration = round.iteration,
      .planned = plan.groups[round.group.value()].slot.current,
      .chunk = 0,
      .position = slot_position(plan, round, worker)};
}

void Server::held(WorkerId worker) {
  push_turns_.pause(worker);
  hand_out_turns();
}

void Server::placed(WorkerId worker) {
  push_turns_.resume(worker);
  hand_out_turns();
}

bool Server::push_may_begin(WorkerId worker, RoundId round) {
  const TurnId turn{.worker = worker, .round = round, .chunk = 0};
  push_turns_.arrived(turn, host_.clock.now());
  const bool may_begin = push_turns_.may_begin(turn);
  if (!may_begin) arrived_.insert(turn);
  return may_begin;
}

void Server::hand_out_turns() {
  while (const auto turn = push_turns_.next(host_.clock.now())) {
    const auto session = sessions_.find(turn->worker);
    if (session == sessions_.end()) {
      push_turns_.forget(turn->worker);
      continue;
    }
    metrics_.turns_total.add();
    session->second->post(Turn{.round = turn->round});
  }
  for (auto arrived = arrived_.begin(); arrived != arrived_.end();) {
    const bool may_begin = push_turns_.may_begin(*arrived);
    const auto session = sessions_.find(arrived->worker);
    if (may_begin && session != sessions_.end()) session->second->retry();
    arrived = may_begin ? arrived_.erase(arrived) : std::next(arrived);
  }
  for (const TurnId& lost : push_turns_.take_stalled()) {
    metrics_.turns_lost_total.add();
    host_.log.warning(
        "turn_taken_back",
        {{"rank", lost.worker.value()},
         {"group", lost.round.group.value()},
         {"iteration", lost.round.iteration.value()},
         {"silent_s", to_seconds(options_.turns.stall_max)}});
  }
  turns_moved_.set();
}

/// Replies to several workers share the PS's way out: one after the other, the first is there
/// sooner and the last no later.
void Server::hand_out_replies() {
  while (const auto turn = reply_turns_.next(host_.clock.now())) {
    if (sessions_.contains(turn->worker)) {
      send_reply(turn->worker, {.round = turn->round, .chunk = turn->chunk});
    } else {
      reply_turns_.forget(turn->worker);
    }
  }
  static_cast<void>(reply_turns_.take_stalled());  // a worker that reads slowly is no news
  turns_moved_.set();
}

void Server::reply_sent(WorkerId worker, ChunkId id) {
  reply_turns_.ended({.worker = worker, .round = id.round, .chunk = id.chunk}, host_.clock.now());
  hand_out_replies();
}

void Server::forget_turns(WorkerId worker) {
  push_turns_.forget(worker);
  reply_turns_.forget(worker);
  rhythm_.forget(worker);
  joins_.forget(worker);
  hand_out_turns();
  hand_out_replies();
  send_joining();
}

void Server::publish_rhythm() {
  if (!started()) return;
  const Plan& plan = plans_.latest();
  if (plan.slot_clock != SlotClock::shared || !has_slots(plan.admission)) return;
  if (const auto rhythm = rhythm_.next(as_ps_time(host_.clock.now()))) broadcast(*rhythm);
}

/// Turns that are handed out, or taken back, because time has passed.
Task<void> Server::watch_turns() {
  for (;;) {
    hand_out_turns();
    hand_out_replies();
    turns_moved_.reset();
    const TimePoint now = host_.clock.now();
    const TimePoint look = std::min(push_turns_.next_look(now), reply_turns_.next_look(now));
    co_await turns_moved_.wait_until(host_.clock, look);
  }
}

}  // namespace stagger
