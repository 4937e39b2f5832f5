#include "ps/join_line.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {

void JoinLine::ask(WorkerId worker, std::size_t pieces) {
  CHECK(
      std::ranges::find(line_, worker, &Joining::worker) == line_.end(),
      "joins twice",
      worker.value());
  if (pieces > 0) line_.push_back({.worker = worker, .pieces = pieces, .sending = false});
}

std::optional<WorkerId> JoinLine::next() {
  const std::size_t served = std::min(line_.size(), workers_max);
  for (std::size_t i = 0; i < served; ++i) {
    Joining& joining = line_[i];
    if (joining.sending) continue;
    joining.sending = true;
    --joining.pieces;
    return joining.worker;
  }
  return std::nullopt;
}

void JoinLine::sent(WorkerId worker) {
  const auto joining = std::ranges::find(line_, worker, &Joining::worker);
  if (joining == line_.end()) return;
  joining->sending = false;
  if (joining->pieces == 0) line_.erase(joining);
}

void JoinLine::forget(WorkerId worker) {
  std::erase_if(line_, [worker](const Joining& joining) { return joining.worker == worker; });
}

}  // namespace stagger
