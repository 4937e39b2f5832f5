#include "net/sim/drop_tail_port.hpp"

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// One byte a microsecond; two segments of queue.
constexpr DropTailOptions slow{
    .rate_bits_per_second = 8e6, .latency = Duration{50us}, .queue_bytes_max = 2000};

TEST(DropTailPort, sends_in_turn_at_its_rate_and_adds_the_latency) {
  DropTailPort port(slow);
  EXPECT_EQ(port.offer(1000, TimePoint{}), TimePoint{1050us});
  EXPECT_EQ(port.offer(1000, TimePoint{}), TimePoint{2050us});
  EXPECT_EQ(port.queue_bytes(TimePoint{500us}), 1500U);
}

TEST(DropTailPort, bursts_that_meet_overflow_and_those_that_take_turns_do_not) {
  DropTailPort together(slow);
  DropTailPort turns(slow);
  for (int flow = 0; flow < 16; ++flow) {
    together.offer(1000, TimePoint{});
    turns.offer(1000, TimePoint{flow * 1ms});
  }
  EXPECT_EQ(together.counters().segments, 2U);
  EXPECT_EQ(together.counters().drops, 14U);
  EXPECT_EQ(together.counters().queue_bytes_peak, 2000U);
  EXPECT_EQ(turns.counters().drops, 0U);
  EXPECT_EQ(turns.counters().bytes, 16000U);
  EXPECT_EQ(turns.counters().queue_bytes_peak, 1000U);
}

TEST(DropTailPort, a_segment_larger_than_the_queue_is_dropped) {
  DropTailPort port(slow);
  EXPECT_FALSE(port.offer(2001, TimePoint{}).has_value());
  EXPECT_EQ(port.counters().bytes, 0U);
}

}  // namespace
}  // namespace stagger
