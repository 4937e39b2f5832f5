#include "ps/intake.hpp"

namespace stagger {

std::optional<WorkerId> Intake::victim(
    const std::function<std::optional<WorkerId>(ChunkId)>& awaited) const {
  for (const auto& [start, start_chunk] : holding_) {
    ChunkId chunk = start_chunk;
    // Each holder waits for one worker, so a walk that does not end within holding_.size() steps is
    // in a ring; the ring is found from one of its own members.
    for (std::size_t step = 0; step < holding_.size(); ++step) {
      const auto next = awaited(chunk);
      if (!next) break;
      if (*next == start) return start;
      const auto held = holding_.find(*next);
      if (held == holding_.end()) break;
      chunk = held->second;
    }
  }
  return std::nullopt;
}

}  // namespace stagger
