#include "ps/push_times.hpp"

namespace stagger {

void PushTimes::ready(RoundId round, TimePoint now) {
  pushes_.insert_or_assign(
      round.group, Push{.iteration = round.iteration, .ready_at = now, .began_at = std::nullopt});
}

void PushTimes::began(RoundId round, TimePoint now) {
  const auto push = pushes_.find(round.group);
  if (push == pushes_.end() || push->second.iteration != round.iteration) return;
  push->second.began_at = now;
}

std::optional<TimePoint> PushTimes::began_at(RoundId round) const {
  const auto push = pushes_.find(round.group);
  if (push == pushes_.end() || push->second.iteration != round.iteration) return std::nullopt;
  return push->second.began_at;
}

void PushTimes::received(RoundId round, TimePoint now) {
  const auto found = pushes_.find(round.group);
  if (found == pushes_.end() || found->second.iteration != round.iteration) return;
  const Push& push = found->second;
  if (!push.began_at) return;
  push_.record(to_seconds(now - *push.began_at));
  ready_to_done_.record(to_seconds(now - push.ready_at));
  pushes_.erase(found);
}

}  // namespace stagger
