#include "ps/turns.hpp"

#include <algorithm>

#include "observability/check.hpp"

namespace stagger {

namespace {

constexpr std::size_t samples_max = 15;
// Shorter pushes come out of the kernel's buffer at once and say nothing of the link.
constexpr std::uint64_t timed_bytes_min = std::uint64_t{64} << 10;

template <class Value>
void remember(std::deque<Value>& samples, Value value) {
  samples.push_back(value);
  if (samples.size() > samples_max) samples.pop_front();
}

}  // namespace

Turns::Turns(Options options) : options_(options) {
  CHECK(options_.concurrent >= 1, options_.concurrent);
  CHECK(options_.stall_max > Duration{0}, "a turn without a limit");
}

void Turns::ask(const TurnId& id, const TurnRank& rank, std::uint64_t bytes) {
  if (requests_.contains(id) || holders_.contains(id)) return;
  const TurnId any_round{
      .worker = id.worker,
      .round = {.group = id.round.group, .iteration = Iteration(0)},
      .chunk = 0};
  for (auto former = requests_.lower_bound(any_round); former != requests_.end();) {
    const TurnId& other = former->first;
    if (other.worker != id.worker || other.round.group != id.round.group) break;
    const bool replaced = other.chunk == id.chunk;
    if (replaced) line_.erase({former->second.rank, other});
    former = replaced ? requests_.erase(former) : std::next(former);
  }
  if (!paused_.contains(id.worker)) line_.insert({rank, id});
  requests_.emplace(id, Request{.rank = rank, .bytes = bytes});
}

std::optional<TurnId> Turns::next(TimePoint now) {
  take_back_stalled(now);
  if (line_.empty()) return std::nullopt;
  const auto first = line_.begin();
  // A slot that is still to come is served early by an idle link only.
  if (first->rank.slot > now && !holders_.empty()) return std::nullopt;
  if (!room(now)) return std::nullopt;
  const TurnId id = first->id;
  const auto request = requests_.find(id);
  CHECK(request != requests_.end(), "a turn in line that nobody asked for");
  holders_.emplace(
      id,
      Holder{
          .bytes = request->second.bytes,
          .granted_at = now,
          .arrived = false,
          .began_at = std::nullopt,
          .moved_at = now,
          .succeeded = false});
  requests_.erase(request);
  line_.erase(first);
  return id;
}

/// Whether one more may go now; an early one uses up its predecessor.
bool Turns::room(TimePoint now) {
  if (holders_.size() < options_.concurrent) return true;
  if (holders_.size() >= 2 * std::size_t{options_.concurrent}) return false;
  for (auto& [id, holder] : holders_) {
    if (successor_at(holder) > now) continue;
    holder.succeeded = true;
    return true;
  }
  return false;
}

/// When the holder is about to end, a handover before its last byte.
TimePoint Turns::successor_at(const Holder& holder) const {
  const double rate = bytes_per_second();
  if (!options_.early || holder.succeeded || rate <= 0.0) return time_point_max;
  const Duration sending = from_seconds(static_cast<double>(holder.bytes) / rate);
  if (!holder.began_at) return holder.granted_at + sending;
  return *holder.began_at + std::max(sending - handover(), Duration{0});
}

void Turns::take_back_stalled(TimePoint now) {
  for (auto each = holders_.begin(); each != holders_.end();) {
    const bool stalled = stalled_at(each->second) <= now;
    if (stalled) stalled_.push_back(each->first);
    each = stalled ? holders_.erase(each) : std::next(each);
  }
}

void Turns::arrived(const TurnId& id, TimePoint now) {
  const auto found = holders_.find(id);
  if (found == holders_.end() || std::exchange(found->second.arrived, true)) return;
  found->second.moved_at = now;
  remember(handovers_, now - found->second.granted_at);
}

bool Turns::may_begin(const TurnId& id) const {
  if (!holders_.contains(id)) return true;
  std::size_t others = 0;
  for (const auto& [other, holder] : holders_) {
    if (other != id && holder.began_at) ++others;
  }
  return others < options_.concurrent;
}

void Turns::began(const TurnId& id, TimePoint now) {
  const auto found = holders_.find(id);
  if (found == holders_.end() || found->second.began_at) return;
  found->second.began_at = now;
  found->second.moved_at = now;
}

void Turns::moved(const TurnId& id, TimePoint now) {
  const auto found = holders_.find(id);
  if (found != holders_.end()) found->second.moved_at = now;
}

void Turns::ended(const TurnId& id, TimePoint now) {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  const Holder& holder = found->second;
  if (holder.began_at && now > *holder.began_at && holder.bytes >= timed_bytes_min) {
    remember(rates_, static_cast<double>(holder.bytes) / to_seconds(now - *holder.began_at));
  }
  holders_.erase(found);
}

void Turns::forget(WorkerId worker) {
  const auto of_worker = [worker](const auto& entry) {
    return entry.first.worker == worker;
  };
  std::erase_if(requests_, of_worker);
  std::erase_if(holders_, of_worker);
  std::erase_if(line_, [worker](const Waiting& waiting) { return waiting.id.worker == worker; });
  paused_.erase(worker);
}

template <class Use>
void Turns::for_each_request(WorkerId worker, Use use) {
  const TurnId first{
      .worker = worker, .round = {.group = GroupId(0), .iteration = Iteration(0)}, .chunk = 0};
  for (auto each = requests_.lower_bound(first); each != requests_.end(); ++each) {
    if (each->first.worker != worker) break;
    use(Waiting{.rank = each->second.rank, .id = each->first});
  }
}

void Turns::pause(WorkerId worker) {
  if (!paused_.insert(worker).second) return;
  std::erase_if(holders_, [worker](const auto& entry) { return entry.first.worker == worker; });
  for_each_request(worker, [this](const Waiting& waiting) { line_.erase(waiting); });
}

void Turns::resume(WorkerId worker) {
  if (paused_.erase(worker) == 0) return;
  for_each_request(worker, [this](const Waiting& waiting) { line_.insert(waiting); });
}

TimePoint Turns::next_look(TimePoint now) const {
  TimePoint stall = time_point_max;
  TimePoint free = holders_.size() < options_.concurrent ? now : time_point_max;
  for (const auto& [id, holder] : holders_) {
    stall = std::min(stall, stalled_at(holder));
    if (holders_.size() < 2 * std::size_t{options_.concurrent}) {
      free = std::min(free, successor_at(holder));
    }
  }
  if (line_.empty()) return stall;
  if (!holders_.empty()) free = std::max(free, line_.begin()->rank.slot);
  return std::min(stall, std::max(free, now));
}

double Turns::bytes_per_second() const {
  if (rates_.empty()) return 0.0;
  std::vector<double> sorted(rates_.begin(), rates_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

Duration Turns::handover() const {
  if (handovers_.empty()) return Duration{0};
  return *std::min_element(handovers_.begin(), handovers_.end());
}

}  // namespace stagger
