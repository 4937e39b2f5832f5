#include "net/sim/rate_windows.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

TEST(RateWindows, spreads_what_passes_over_the_windows_it_takes) {
  RateWindows windows(5ms);
  windows.add(1000, TimePoint{2ms}, TimePoint{12ms});  // 3 of 10 ms, then 5, then 2
  EXPECT_DOUBLE_EQ(windows.peak_bytes(), 500.0);
  EXPECT_DOUBLE_EQ(windows.mean_bytes(), 1000.0 / 3);
}

TEST(RateWindows, the_mean_begins_with_the_first_byte_and_counts_the_pauses_after_it) {
  RateWindows windows(5ms);
  EXPECT_EQ(windows.mean_bytes(), 0.0);
  EXPECT_EQ(windows.peak_bytes(), 0.0);
  windows.add(300, TimePoint{51ms}, TimePoint{51ms});
  windows.add(100, TimePoint{68ms}, TimePoint{69ms});
  EXPECT_DOUBLE_EQ(windows.mean_bytes(), 100.0);
  EXPECT_DOUBLE_EQ(windows.peak_bytes(), 300.0);
}

TEST(RateWindows, forgets_what_comes_after_its_last_window) {
  RateWindows windows(5ms);
  windows.add(
      1,
      TimePoint{} + RateWindows::windows_max * 5ms,
      TimePoint{} + RateWindows::windows_max * 5ms);
  EXPECT_EQ(windows.peak_bytes(), 0.0);
}

}  // namespace
}  // namespace stagger
