#include "ps/center.hpp"

#include <algorithm>
#include <utility>

#include "observability/check.hpp"

namespace stagger {

namespace {

std::size_t largest_chunk(const ArenaLayout& layout, std::size_t chunk_floats) {
  std::size_t largest = 1;
  for (std::size_t g = 0; g < layout.groups(); ++g) {
    largest = std::max(largest, std::min(chunk_floats, layout.group(g).size));
  }
  return largest;
}

}  // namespace

Center::Center(const Arena& initial, std::size_t chunk_floats)
    : layout_(initial.layout()),
      chunk_floats_(chunk_floats),
      pool_(largest_chunk(layout_, chunk_floats)) {
  CHECK(chunk_floats >= 16 && chunk_floats % 16 == 0, "chunks are whole 64-byte lines");
  for (std::size_t g = 0; g < layout_.groups(); ++g) {
    std::vector<Snapshot> group;
    for (auto rest = initial.group(g); !rest.empty();) {
      const auto part = rest.first(std::min(chunk_floats_, rest.size()));
      auto buffer = pool_.acquire();
      std::copy(part.begin(), part.end(), buffer->span().begin());
      group.push_back(
          {.values = std::move(buffer), .size = part.size(), .iteration = {}, .present = 0});
      rest = rest.subspan(part.size());
    }
    chunks_.push_back(std::move(group));
  }
}

std::uint32_t Center::chunks(GroupId group) const {
  return static_cast<std::uint32_t>(chunks_.at(group.value()).size());
}

std::size_t Center::chunk_size(GroupId group, std::uint32_t chunk) const {
  return chunks_.at(group.value()).at(chunk).size;
}

const Center::Snapshot& Center::chunk(GroupId group, std::uint32_t chunk) const {
  return chunks_.at(group.value()).at(chunk);
}

void Center::close(const Close& close, const SyncPolicy& policy, ChunkBuffer sum) {
  const auto g = close.round.group.value();
  Snapshot& snapshot = chunks_.at(g).at(close.chunk);
  CHECK_LT(snapshot.iteration, close.round.iteration);
  snapshot.iteration = close.round.iteration;
  snapshot.present = close.present;
  if (close.present == 0) return;

  CHECK(sum != nullptr, "a present worker without values", g, close.chunk);
  const auto values = sum->span().first(snapshot.size);
  if (policy.pushes_gradients()) {
    SgdConstants sgd = sgd_;
    sgd.learning_rate = close.learning_rate;
    const auto momentum =
        sgd.momentum != 0.0F ? velocity(close.round, close.chunk) : std::span<float>();
    cpu::mean_gradient_step(values, snapshot.span(), momentum, sgd, close.present);
  } else if (policy.outer_momentum > 0) {
    const OuterConstants outer{
        .learning_rate = static_cast<float>(policy.beta),
        .momentum = static_cast<float>(policy.outer_momentum)};
    const Attendance attendance{.present = close.present, .workers = policy.workers};
    cpu::outer_center(
        values, snapshot.span(), velocity(close.round, close.chunk), outer, attendance);
  } else {
    cpu::elastic_center(
        values, snapshot.span(), static_cast<float>(policy.beta), close.present, policy.workers);
  }
  snapshot.values = std::move(sum);
}

std::span<float> Center::velocity(RoundId round, std::uint32_t chunk) {
  const auto g = round.group.value();
  velocity_.resize(chunks_.size());
  velocity_[g].resize(chunks_[g].size());
  AlignedFloats& state = velocity_[g][chunk];
  if (state.size() == 0) state = AlignedFloats(chunks_[g][chunk].size);
  return state.span();
}

Arena Center::assemble() const {
  Arena arena(layout_);
  for (std::size_t g = 0; g < chunks_.size(); ++g) {
    auto target = arena.group(g).begin();
    for (const Snapshot& chunk : chunks_[g]) {
      const auto source = chunk.span();
      target = std::copy(source.begin(), source.end(), target);
    }
  }
  return arena;
}

}  // namespace stagger
