#include "net/sim/link_model.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace stagger {
namespace {

/// One byte a microsecond; two milliseconds of queue.
constexpr LinkOptions slow{
    .rate_bits_per_second = 8e6, .latency = Duration{0}, .queue_bytes_max = 2000};

TEST(Link, sends_first_come_first_served_at_its_rate) {
  LinkModel link(slow);
  const Transfer first = link.send(1000, TimePoint{});
  EXPECT_EQ(first.begin, TimePoint{});
  EXPECT_EQ(first.end, TimePoint{1ms});
  const Transfer second = link.send(500, TimePoint{200us});
  EXPECT_EQ(second.begin, TimePoint{1ms});
  EXPECT_EQ(second.end, TimePoint{1500us});
  const Transfer later = link.send(1, TimePoint{9ms});
  EXPECT_EQ(later.begin, TimePoint{9ms});
  EXPECT_EQ(later.end, TimePoint{9001us});
}

TEST(Link, full_queue_holds_the_sender_until_its_rest_fits) {
  LinkModel link(slow);
  EXPECT_EQ(link.send(2000, TimePoint{}).taken, TimePoint{});
  EXPECT_EQ(link.room_at(TimePoint{}), TimePoint{});
  // 5000 bytes end at 7 ms; 2000 of them are in the queue, and the sender is free, from 5 ms on.
  const Transfer large = link.send(5000, TimePoint{});
  EXPECT_EQ(large.end, TimePoint{7ms});
  EXPECT_EQ(large.taken, TimePoint{5ms});
  EXPECT_EQ(link.room_at(TimePoint{1ms}), TimePoint{5ms});
  EXPECT_EQ(link.room_at(TimePoint{6ms}), TimePoint{6ms});
}

TEST(Link, backlog_drains_at_the_rate_and_its_maximum_is_kept) {
  LinkModel link(slow);
  link.send(1000, TimePoint{});
  link.send(3000, TimePoint{500us});
  EXPECT_EQ(link.backlog_bytes(TimePoint{500us}), 3500U);
  EXPECT_EQ(link.backlog_bytes(TimePoint{3ms}), 1000U);
  EXPECT_EQ(link.backlog_bytes(TimePoint{4ms}), 0U);
  link.send(10, TimePoint{5ms});
  EXPECT_EQ(link.backlog_bytes_max(), 3500U);
  EXPECT_EQ(link.bytes_total(), 4010U);
  EXPECT_EQ(link.busy_total(), Duration{4010us});
}

TEST(Link, one_flow_between_equal_links_is_not_charged_twice) {
  LinkModel link(slow);
  EXPECT_EQ(link.receive(1000, TimePoint{}, TimePoint{1ms}), TimePoint{1ms});
}

TEST(Link, senders_that_meet_at_one_ingress_share_it) {
  LinkModel link(slow);
  EXPECT_EQ(link.receive(1000, TimePoint{}, TimePoint{1ms}), TimePoint{1ms});
  EXPECT_EQ(link.receive(1000, TimePoint{}, TimePoint{1ms}), TimePoint{2ms});
  EXPECT_EQ(link.receive(1000, TimePoint{}, TimePoint{1ms}), TimePoint{3ms});
  EXPECT_EQ(link.backlog_bytes_max(), 2000U);
}

TEST(Link, slow_senders_fill_a_fast_ingress_together) {
  LinkModel link(slow);
  for (int sender = 0; sender < 4; ++sender) {
    EXPECT_EQ(link.receive(1000, TimePoint{}, TimePoint{4ms}), TimePoint{4ms});
  }
}

TEST(Link, infinite_rate_takes_no_time) {
  LinkModel link(LinkOptions{.rate_bits_per_second = std::numeric_limits<double>::infinity()});
  const Transfer transfer = link.send(std::uint64_t{1} << 40, TimePoint{1s});
  EXPECT_EQ(transfer.end, TimePoint{1s});
  EXPECT_EQ(transfer.taken, TimePoint{1s});
  EXPECT_EQ(link.backlog_bytes(TimePoint{}), 0U);
}

TEST(Link, serialisation_is_exact_to_the_nanosecond) {
  const LinkModel gigabit(LinkOptions{.rate_bits_per_second = 1e9});
  EXPECT_EQ(gigabit.serialisation(1), 8ns);
  EXPECT_EQ(gigabit.serialisation(1 << 20), 8388608ns);
  const LinkModel ten(LinkOptions{.rate_bits_per_second = 1e10});
  EXPECT_EQ(ten.serialisation(1500), 1200ns);
}

}  // namespace
}  // namespace stagger
