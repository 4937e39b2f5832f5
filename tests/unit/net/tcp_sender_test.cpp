#include "net/sim/tcp_sender.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace stagger {
namespace {

constexpr TcpModelOptions small{
    .segment_bytes = 1000, .initial_segments = 4, .receive_bytes_max = 1U << 20U};

std::vector<TcpSender::Segment> send_all(TcpSender& sender, TimePoint now) {
  std::vector<TcpSender::Segment> sent;
  while (const auto segment = sender.next(now))
    sent.push_back(*segment);
  return sent;
}

TEST(TcpSender, begins_with_its_initial_window_and_doubles_it_while_all_arrives) {
  TcpSender sender(small);
  sender.write(100000);
  TimePoint now{};
  for (const std::size_t expected : {4U, 8U, 16U, 32U}) {
    const auto sent = send_all(sender, now);
    EXPECT_EQ(sender.window_bytes(), expected * 1000);
    now += 1ms;
    for (const auto& segment : sent)
      sender.acknowledged(segment.transmission, now);
  }
  EXPECT_EQ(sender.retransmissions(), 0U);
}

TEST(TcpSender, the_last_segment_is_as_short_as_the_stream) {
  TcpSender sender(small);
  sender.write(1500);
  const auto sent = send_all(sender, TimePoint{});
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].begin, 1000U);
  EXPECT_EQ(sent[1].end, 1500U);
  EXPECT_EQ(sender.unsent(), 0U);
  EXPECT_FALSE(sender.all_acknowledged());
}

TEST(TcpSender, a_gap_is_sent_again_and_halves_the_window_once) {
  TcpSender sender(small);
  sender.write(4000);
  const auto sent = send_all(sender, TimePoint{});
  ASSERT_EQ(sent.size(), 4U);
  // The first two are lost.
  sender.acknowledged(sent[2].transmission, TimePoint{1ms});
  sender.acknowledged(sent[3].transmission, TimePoint{1ms});
  EXPECT_EQ(sender.window_bytes(), 2000U);
  const auto again = send_all(sender, TimePoint{1ms});
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].begin, 0U);
  EXPECT_EQ(again[1].begin, 1000U);
  EXPECT_EQ(sender.retransmissions(), 2U);
  for (const auto& segment : again)
    sender.acknowledged(segment.transmission, TimePoint{2ms});
  EXPECT_TRUE(sender.all_acknowledged());
  EXPECT_EQ(sender.timeouts(), 0U);
}

TEST(TcpSender, a_lost_tail_is_probed_after_two_round_trips_and_found_by_the_probe) {
  TcpSender sender(small);
  sender.write(1000);
  sender.acknowledged(send_all(sender, TimePoint{}).front().transmission, TimePoint{1ms});
  sender.write(3000);
  ASSERT_EQ(send_all(sender, TimePoint{2ms}).size(), 3U);  // none of them arrives
  EXPECT_EQ(sender.timeout_at(), TimePoint{2ms} + 2ms + small.probe_margin);
  sender.timed_out(sender.timeout_at());
  const auto probe = send_all(sender, TimePoint{12ms});
  ASSERT_EQ(probe.size(), 1U);
  EXPECT_EQ(probe[0].begin, 3000U);
  sender.acknowledged(probe[0].transmission, TimePoint{13ms});
  EXPECT_EQ(send_all(sender, TimePoint{13ms}).size(), 2U);
  EXPECT_EQ(sender.timeouts(), 0U);
}

TEST(TcpSender, silence_after_the_probe_ends_in_a_timeout_that_grows) {
  TcpSender sender(small);
  sender.write(1000);
  sender.acknowledged(send_all(sender, TimePoint{}).front().transmission, TimePoint{1ms});
  sender.write(4000);
  send_all(sender, TimePoint{1ms});
  sender.timed_out(sender.timeout_at());  // the probe
  TimePoint last = TimePoint{11ms};
  send_all(sender, last);
  Duration waited{0};
  for (std::uint64_t timeout = 1; timeout <= 3; ++timeout) {
    const TimePoint due = sender.timeout_at();
    EXPECT_GE(due - last, 2 * waited);
    waited = due - last;
    EXPECT_GE(waited, small.timeout_min);
    last = due;
    sender.timed_out(due);
    EXPECT_EQ(sender.window_bytes(), small.segment_bytes);
    EXPECT_EQ(sender.timeouts(), timeout);
    EXPECT_EQ(send_all(sender, due).size(), 1U);
  }
}

TEST(TcpSender, never_sends_beyond_the_receivers_window) {
  TcpModelOptions narrow = small;
  narrow.receive_bytes_max = 2500;
  TcpSender sender(narrow);
  sender.write(10000);
  const auto sent = send_all(sender, TimePoint{});
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent.back().end, 2500U);
  sender.open_window(3000);
  EXPECT_EQ(send_all(sender, TimePoint{}).size(), 1U);
}

TEST(TcpSender, an_acknowledgement_of_nothing_it_sent_changes_nothing) {
  TcpSender sender(small);
  sender.write(4000);
  send_all(sender, TimePoint{});
  const auto window = sender.window_bytes();
  sender.acknowledged(77, TimePoint{1ms});
  EXPECT_EQ(sender.window_bytes(), window);
  EXPECT_FALSE(sender.next(TimePoint{1ms}).has_value());
}

}  // namespace
}  // namespace stagger
