#include "ps/compute_watch.hpp"

#include <algorithm>

namespace stagger {

void ComputeWatch::heard(WorkerId worker, Iteration finished, Duration compute) {
  if (finished.value() == 0) return;
  const auto found = intervals_.find(worker);
  const bool follows = found != intervals_.end() && finished >= found->second.until &&
                       compute >= found->second.compute;
  if (follows) {
    found->second.until = finished;
    found->second.compute = compute;
  } else {
    intervals_[worker] = {
        .from = finished, .compute_from = compute, .until = finished, .compute = compute};
  }
}

bool ComputeWatch::fresh(const std::vector<WorkerId>& workers) const {
  return std::ranges::all_of(workers, [this](WorkerId worker) {
    const auto found = intervals_.find(worker);
    return found != intervals_.end() && found->second.from < found->second.until;
  });
}

std::optional<double> ComputeWatch::take() {
  std::vector<double> ratios;
  for (auto& [worker, interval] : intervals_) {
    const std::uint64_t iterations = interval.until.value() - interval.from.value();
    const auto profiled = profiled_.find(worker);
    if (iterations > 0 && profiled != profiled_.end() && profiled->second > Duration{0}) {
      const double compute = to_seconds(interval.compute - interval.compute_from);
      ratios.push_back(compute / static_cast<double>(iterations) / to_seconds(profiled->second));
    }
    interval.from = interval.until;
    interval.compute_from = interval.compute;
  }
  std::erase_if(ratios, [](double ratio) { return !(ratio > 0); });
  if (ratios.empty()) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

}  // namespace stagger
