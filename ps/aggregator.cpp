#include "ps/aggregator.hpp"

#include <utility>

#include <fmt/format.h>

#include "kernels/elastic.hpp"
#include "observability/check.hpp"

namespace stagger {

namespace {

Error refusal(const std::string& why) {
  return {.code = Errc::refused, .detail = why};
}

}  // namespace

Aggregator::Aggregator(Center& center, const PlanHistory& plans, Options options, Absent absent)
    : center_(center),
      plans_(plans),
      options_(std::move(options)),
      absent_(std::move(absent)),
      intake_(options_.early_chunks_max),
      groups_(center.groups()) {}

bool Aggregator::is_final(Iteration iteration) const {
  return options_.final_round && iteration == options_.last_iteration.next();
}

const Plan& Aggregator::plan_of(Iteration iteration) const {
  return plans_.at(iteration);
}

Result<void> Aggregator::check(WorkerId worker, const ChunkHead& head) {
  const auto [round, chunk] = head.id;
  const auto named = fmt::format(
      "push of group {} iteration {} chunk {}",
      round.group.value(),
      round.iteration.value(),
      chunk);
  if (head.codec != codec_float32)
    return refusal(fmt::format("{}: no codec {}", named, head.codec));
  if (round.group.value() >= groups_.size()) {
    return refusal(fmt::format("{}: there are {} groups", named, groups_.size()));
  }
  if (chunk >= center_.chunks(round.group)) {
    return refusal(fmt::format("{}: the group has {} chunks", named, center_.chunks(round.group)));
  }
  if (round.iteration.value() == 0) return refusal(named + ": iterations count from 1");
  const Plan& plan = plan_of(round.iteration);
  if (head.plan != plan.version) {
    return refusal(fmt::format(
        "{}: plan version {}, {} is in force", named, head.plan.value(), plan.version.value()));
  }
  if (round.iteration > options_.last_iteration ? !is_final(round.iteration)
                                                : !due(plan, round.group, round.iteration)) {
    return refusal(fmt::format("{}: not due (period {})", named, plan.policy.period));
  }
  GroupState& state = groups_[round.group.value()];
  if (round.iteration < state.last_closed) {
    return refusal(fmt::format(
        "{}: stale, the round of iteration {} has closed", named, state.last_closed.value()));
  }
  if (round.iteration == state.last_closed) return {};
  if (state.open && state.open->round.id() != round) {
    return refusal(fmt::format(
        "{}: the round of iteration {} is open", named, state.open->round.id().iteration.value()));
  }
  if (absent_(worker, round.iteration)) return refusal(named + ": the worker was declared absent");
  if (!state.open) open(state, round);
  return {};
}

void Aggregator::open(GroupState& state, RoundId id) {
  const auto chunks = center_.chunks(id.group);
  const auto order = options_.order(plan_of(id.iteration), id);
  state.open.emplace(OpenRound{
      .round = Round(id, order, chunks),
      .sums = std::vector<ChunkBuffer>(chunks),
      .kept = std::vector<std::map<WorkerId, ChunkBuffer>>(chunks),
      .shed = std::vector<std::map<WorkerId, bool>>(chunks),
      .chunks_closed = 0});
  for (const WorkerId worker : order) {
    if (absent_(worker, id.iteration)) state.open->round.skip(worker);
  }
}

Aggregator::Offer Aggregator::offer(WorkerId worker, ChunkId id, ChunkBuffer& values) {
  const bool is_victim = victim_ == worker;
  if (is_victim) victim_.reset();
  GroupState& state = groups_.at(id.round.group.value());
  if (!state.open || state.open->round.id() != id.round) return Offer::repeated;
  Round& round = state.open->round;
  const Round::Turn turn = round.turn(worker, id.chunk);
  if (turn == Round::Turn::repeated || turn == Round::Turn::unknown) return Offer::repeated;
  if (!cpu::all_finite(values->span().first(center_.chunk_size(id.round.group, id.chunk)))) {
    round.skip(worker, id.chunk);
    advance(state, id.chunk);
    return Offer::skipped;
  }
  if (turn == Round::Turn::next) {
    sum(*state.open, worker, id.chunk, std::exchange(values, nullptr));
    advance(state, id.chunk);
    return Offer::taken;
  }
  if (is_victim) {
    state.open->shed[id.chunk].emplace(worker, false);
    return Offer::shed;
  }
  if (!intake_.try_keep()) return Offer::held;
  round.keep(worker, id.chunk);
  state.open->kept[id.chunk].emplace(worker, std::exchange(values, nullptr));
  return Offer::kept;
}

void Aggregator::sum(OpenRound& open, WorkerId worker, std::uint32_t chunk, ChunkBuffer values) {
  const auto size = center_.chunk_size(open.round.id().group, chunk);
  ChunkBuffer& total = open.sums[chunk];
  if (total == nullptr) {
    total = std::move(values);
  } else {
    cpu::accumulate(total->span().first(size), std::as_const(*values).span().first(size));
  }
  open.round.take(worker, chunk);
}

void Aggregator::advance(GroupState& state, std::uint32_t chunk) {
  OpenRound& open = *state.open;
  while (open.round.front_is_kept(chunk)) {
    const WorkerId worker = *open.round.front(chunk);
    auto node = open.kept[chunk].extract(worker);
    intake_.release();
    sum(open, worker, chunk, std::move(node.mapped()));
  }
  const RoundId id = open.round.id();
  if (const auto front = open.round.front(chunk)) {
    const auto shed = open.shed[chunk].find(*front);
    if (shed != open.shed[chunk].end() && !std::exchange(shed->second, true)) {
      resends_.emplace_back(*front, ChunkId{.round = id, .chunk = chunk});
    }
    return;
  }
  const Center::Close close{
      .round = id,
      .chunk = chunk,
      .present = open.round.present(chunk),
      .learning_rate =
          options_.learning_rate ? static_cast<float>(options_.learning_rate(id.iteration)) : 0.0F};
  center_.close(close, plan_of(id.iteration).policy, std::move(open.sums[chunk]));
  closed_.push_back({id, chunk});
  // One absence can finish several chunks at once; the round ends when the last is in the center.
  if (++open.chunks_closed < open.round.chunks()) return;
  state.last_closed = id.iteration;
  state.open.reset();
  ++rounds_closed_;
}

void Aggregator::skip_absent(WorkerId worker) {
  for (GroupState& state : groups_) {
    if (!state.open || !absent_(worker, state.open->round.id().iteration)) continue;
    state.open->round.skip(worker);
    const auto chunks = state.open->round.chunks();
    for (std::uint32_t chunk = 0; chunk < chunks && state.open; ++chunk) {
      const auto snapshot = center_.chunk(state.open->round.id().group, chunk).iteration;
      if (snapshot < state.open->round.id().iteration) advance(state, chunk);
    }
  }
}

bool Aggregator::can_place(WorkerId worker, ChunkId id) const {
  if (intake_.has_room()) return true;
  const GroupState& state = groups_.at(id.round.group.value());
  if (!state.open || state.open->round.id() != id.round) return true;
  return state.open->round.turn(worker, id.chunk) != Round::Turn::early;
}

void Aggregator::forget(WorkerId worker) {
  intake_.unhold(worker);
  if (victim_ == worker) victim_.reset();
}

std::optional<WorkerId> Aggregator::take_victim() {
  if (victim_) return std::nullopt;
  victim_ = intake_.victim([this](ChunkId id) -> std::optional<WorkerId> {
    const GroupState& state = groups_.at(id.round.group.value());
    if (!state.open || state.open->round.id() != id.round) return std::nullopt;
    return state.open->round.front(id.chunk);
  });
  if (victim_) intake_.unhold(*victim_);
  return victim_;
}

std::vector<Aggregator::Waiting> Aggregator::waiting() const {
  std::vector<Waiting> waiting;
  for (const GroupState& state : groups_) {
    if (state.open) waiting.push_back({state.open->round.id(), state.open->round.missing()});
  }
  return waiting;
}

}  // namespace stagger
