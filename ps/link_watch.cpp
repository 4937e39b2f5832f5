#include "ps/link_watch.hpp"

#include <algorithm>
#include <vector>

namespace stagger {
namespace {

constexpr double fastest_seconds_per_byte = 8e-13;  // 10^13 bit/s: beyond, nothing was measured

double median(const std::deque<double>& samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

}  // namespace

void LinkWatch::began(WorkerId worker, RoundId round, bool waited, TimePoint now) {
  alone_.reset();
  const Push push{.worker = worker, .round = round};
  if (open_.empty() && !waited) alone_ = push;
  open_[push] = now;
}

void LinkWatch::received(WorkerId worker, RoundId round, std::size_t bytes, TimePoint now) {
  const Push push{.worker = worker, .round = round};
  const auto found = open_.find(push);
  if (found == open_.end()) return;
  const Duration took = now - found->second;
  found->second = now;
  if (alone_ != push || bytes < options_.bytes_min) return;
  const double cost = to_seconds(took) / static_cast<double>(bytes);
  if (cost < fastest_seconds_per_byte) return;
  std::deque<double>& samples = samples_[worker];
  samples.push_back(cost);
  if (samples.size() > options_.window) samples.pop_front();
}

void LinkWatch::ended(WorkerId worker, RoundId round) {
  const Push push{.worker = worker, .round = round};
  open_.erase(push);
  if (alone_ == push) alone_.reset();
}

std::optional<double> LinkWatch::seconds_per_byte() const {
  std::optional<double> slowest;
  for (const auto& [worker, samples] : samples_) {
    if (samples.size() < options_.samples_min) continue;
    slowest = std::max(slowest.value_or(0.0), median(samples));
  }
  return slowest;
}

}  // namespace stagger
