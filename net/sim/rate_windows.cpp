#include "net/sim/rate_windows.hpp"

#include <algorithm>
#include <numeric>

#include "observability/check.hpp"

namespace stagger {

void RateWindows::add(std::uint64_t bytes, TimePoint begin, TimePoint end) {
  CHECK(begin <= end, "bytes pass forwards");
  const auto first = static_cast<std::size_t>(begin.time_since_epoch() / window_);
  const auto last = static_cast<std::size_t>(end.time_since_epoch() / window_);
  if (last >= windows_max) return;
  const auto total = static_cast<double>(bytes);
  if (first == last) return count(first, total);
  const double span = to_seconds(end - begin);
  TimePoint from = begin;
  for (std::size_t window = first; window <= last; ++window) {
    const TimePoint until = std::min(end, TimePoint{(window + 1) * window_});
    count(window, total * to_seconds(until - from) / span);
    from = until;
  }
}

void RateWindows::count(std::size_t window, double bytes) {
  if (bytes_.size() <= window) bytes_.resize(window + 1);
  bytes_[window] += bytes;
}

double RateWindows::peak_bytes() const {
  return bytes_.empty() ? 0.0 : *std::max_element(bytes_.begin(), bytes_.end());
}

double RateWindows::mean_bytes() const {
  const auto first =
      std::find_if(bytes_.begin(), bytes_.end(), [](double bytes) { return bytes > 0; });
  if (first == bytes_.end()) return 0.0;
  return std::accumulate(first, bytes_.end(), 0.0) / static_cast<double>(bytes_.end() - first);
}

}  // namespace stagger
