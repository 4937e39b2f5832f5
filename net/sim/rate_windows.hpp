#pragma once

#include <cstdint>
#include <vector>

#include "net/time.hpp"

namespace stagger {

/// How unevenly bytes come: their number in each window of fixed length. Pure.
class RateWindows {
 public:
  /// Beyond so many windows nothing is counted: a bound on memory, over an hour at 5 ms.
  static constexpr std::size_t windows_max = std::size_t{1} << 20;

  explicit RateWindows(Duration window = 5ms) : window_(window) {}

  /// Bytes that pass evenly from `begin` to `end`. REQUIRES begin <= end.
  void add(std::uint64_t bytes, TimePoint begin, TimePoint end);

  Duration window() const { return window_; }

  /// Bytes of the fullest window.
  double peak_bytes() const;

  /// Mean over the windows from the first that is not empty to the last; 0 without any.
  double mean_bytes() const;

 private:
  void count(std::size_t window, double bytes);

  Duration window_;
  std::vector<double> bytes_;
};

}  // namespace stagger
