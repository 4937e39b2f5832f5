#include "ps/round.hpp"

#include <algorithm>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

Round::Round(RoundId id, std::vector<WorkerId> order, std::uint32_t chunks)
    : id_(id),
      order_(std::move(order)),
      chunks_(chunks),
      open_chunks_(order_.empty() ? 0 : chunks) {
  CHECK(chunks > 0, "a group without chunks", id.group);
  for (Chunk& chunk : chunks_)
    chunk.marks.assign(order_.size(), Mark::pending);
}

std::optional<std::size_t> Round::position(WorkerId worker) const {
  const auto found = std::find(order_.begin(), order_.end(), worker);
  if (found == order_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - order_.begin());
}

Round::Turn Round::turn(WorkerId worker, std::uint32_t chunk) const {
  const auto at = position(worker);
  if (!at || chunk >= chunks_.size()) return Turn::unknown;
  const Chunk& state = chunks_[chunk];
  if (state.marks[*at] != Mark::pending) return Turn::repeated;
  return *at == state.front ? Turn::next : Turn::early;
}

void Round::keep(WorkerId worker, std::uint32_t chunk) {
  CHECK(turn(worker, chunk) == Turn::early, "kept out of turn", worker, chunk);
  chunks_[chunk].marks[*position(worker)] = Mark::kept;
}

void Round::take(WorkerId worker, std::uint32_t chunk) {
  CHECK(front(chunk) == worker, "summed out of turn", worker, chunk);
  Chunk& state = chunks_[chunk];
  ++state.taken;
  finish(state, state.front);
}

void Round::skip(WorkerId worker, std::uint32_t chunk) {
  const auto at = position(worker);
  if (!at || chunk >= chunks_.size()) return;
  if (chunks_[chunk].marks[*at] == Mark::done) return;
  finish(chunks_[chunk], *at);
}

void Round::skip(WorkerId worker) {
  const auto at = position(worker);
  if (!at) return;
  for (Chunk& chunk : chunks_) {
    if (chunk.marks[*at] == Mark::pending) finish(chunk, *at);
  }
}

void Round::finish(Chunk& chunk, std::size_t position) {
  chunk.marks[position] = Mark::done;
  if (chunk.front == order_.size()) return;
  while (chunk.front < order_.size() && chunk.marks[chunk.front] == Mark::done)
    ++chunk.front;
  if (chunk.front == order_.size()) --open_chunks_;
}

std::optional<WorkerId> Round::front(std::uint32_t chunk) const {
  const Chunk& state = chunks_.at(chunk);
  if (state.front == order_.size()) return std::nullopt;
  return order_[state.front];
}

bool Round::front_is_kept(std::uint32_t chunk) const {
  const Chunk& state = chunks_.at(chunk);
  return state.front < order_.size() && state.marks[state.front] == Mark::kept;
}

bool Round::closed() const {
  return open_chunks_ == 0;
}

std::vector<WorkerId> Round::missing() const {
  std::vector<WorkerId> workers;
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const auto pending = [at](const Chunk& chunk) {
      return chunk.marks[at] == Mark::pending;
    };
    if (std::any_of(chunks_.begin(), chunks_.end(), pending)) workers.push_back(order_[at]);
  }
  return workers;
}

}  // namespace stagger
