#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/sim/network.hpp"
#include "net/sim/world.hpp"
#include "tests/unit/net/frames.hpp"

namespace stagger {
namespace {

/// One byte a microsecond, one millisecond of latency at each end.
constexpr LinkOptions slow{.rate_bits_per_second = 8e6, .latency = 1ms, .queue_bytes_max = 2000};
constexpr NodeOptions slow_node{.egress = slow, .ingress = slow};

/// With its table and a head of 8 bytes: exactly 1000 bytes on the wire.
constexpr std::size_t payload_words_of_1000_bytes = (1000 - 16 - 8) / 8;

/// What a test's tasks share.
struct Scene {
  explicit Scene(WorldOptions options = {}) : world(7, std::move(options)) {
    world.add_node("ps", slow_node);
    world.add_node("w0", slow_node);
    world.add_node("w1", slow_node);
  }

  TimePoint now() { return world.clock().now(); }

  SimWorld world;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> near;  ///< w0's end
  std::unique_ptr<Connection> far;   ///< ps's end
  std::vector<TimePoint> times;
  std::vector<Error> errors;
  std::vector<TestFrame> frames;
};

Task<void> connect_as(Scene& scene, std::string node, std::unique_ptr<Connection>& end) {
  Network& network = scene.world.host(node).network;
  const Endpoint remote{.host = "ps", .port = 7000};
  auto connection = co_await network.connect(remote, time_point_max);
  end = std::move(connection.value());
}

Task<void> accept_one(Scene& scene) {
  auto connection = co_await scene.listener->accept();
  scene.far = std::move(connection.value());
}

/// Joins w0 and ps, from time 0 to 4 ms: one round trip.
void join(Scene& scene) {
  scene.listener =
      scene.world.host("ps").network.listen(Endpoint{.host = "ps", .port = 7000}).value();
  TaskScope scope(scene.world.executor(), "join");
  scope.spawn("connect", connect_as(scene, "w0", scene.near));
  scope.spawn("accept", accept_one(scene));
  scene.world.run(scope);
  ASSERT_TRUE(scene.near && scene.far);
}

Task<void> send_many(Scene& scene, Connection& connection, int count, Duration stall_max) {
  for (int i = 0; i < count; ++i) {
    TestFrame frame = make_frame(1, payload_words_of_1000_bytes, static_cast<std::uint64_t>(i) + 1);
    const Result<void> sent = co_await send_frame(connection, std::move(frame), stall_max);
    scene.times.push_back(scene.now());
    if (!sent) {
      scene.errors.push_back(sent.error());
      co_return;
    }
  }
}

Task<void> receive_until_error(Scene& scene, Connection& connection, TimePoint deadline) {
  while (true) {
    Result<TestFrame> frame = co_await receive_frame(connection, deadline, 1s);
    if (!frame) {
      scene.errors.push_back(frame.error());
      co_return;
    }
    scene.times.push_back(scene.now());
    scene.frames.push_back(std::move(*frame));
  }
}

Task<void> receive_many(Scene& scene, Connection& connection, int count) {
  for (int i = 0; i < count; ++i) {
    Result<TestFrame> frame = co_await receive_frame(connection, time_point_max, 1s);
    scene.times.push_back(scene.now());
    scene.frames.push_back(std::move(frame.value()));
  }
}

Task<void> close_at(Scene& scene, Connection& connection, TimePoint time) {
  co_await scene.world.clock().sleep_until(time);
  connection.close();
}

Task<void> crash_at(Scene& scene, std::string node, TimePoint time) {
  co_await scene.world.clock().sleep_until(time);
  scene.world.crash(node);
}

Task<void> clog_between(Scene& scene, std::string node, TimePoint begin, TimePoint end) {
  co_await scene.world.clock().sleep_until(begin);
  scene.world.set_clogged(node, true);
  co_await scene.world.clock().sleep_until(end);
  scene.world.set_clogged(node, false);
}

Task<void> try_connect(Scene& scene, Endpoint remote, TimePoint deadline) {
  auto connection = co_await scene.world.host("w0").network.connect(remote, deadline);
  scene.times.push_back(scene.now());
  if (!connection) scene.errors.push_back(connection.error());
}

TEST(SimNetwork, connecting_takes_one_round_trip) {
  Scene scene;
  join(scene);
  EXPECT_EQ(scene.now(), TimePoint{4ms});
  EXPECT_EQ(scene.near->peer(), "ps:7000");
  EXPECT_EQ(scene.far->peer(), "w0:49152");
  EXPECT_EQ(scene.near->stats().round_trip, 4ms);
}

TEST(SimNetwork, frames_arrive_intact_when_the_links_say) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 1, 1s));
  scope.spawn("receive", receive_many(scene, *scene.far, 1));
  scene.world.run(scope);
  // The queue takes 1000 bytes at once; they leave in 1 ms and travel 2 ms.
  EXPECT_EQ(scene.times, (std::vector<TimePoint>{TimePoint{4ms}, TimePoint{7ms}}));
  ASSERT_EQ(scene.frames.size(), 1U);
  EXPECT_EQ(scene.frames[0], make_frame(1, payload_words_of_1000_bytes, 1));
  EXPECT_EQ(scene.near->stats().bytes_sent, 1000U);
  EXPECT_EQ(scene.far->stats().bytes_received, 1000U);
}

TEST(SimNetwork, two_senders_share_the_receivers_ingress) {
  Scene scene;
  join(scene);
  std::unique_ptr<Connection> other;
  TaskScope joining(scene.world.executor(), "join");
  std::unique_ptr<Connection> first_far = std::move(scene.far);
  joining.spawn("connect", connect_as(scene, "w1", other));
  joining.spawn("accept", accept_one(scene));
  scene.world.run(joining);
  const TimePoint begin = scene.now();

  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 1, 1s));
  scope.spawn("send", send_many(scene, *other, 1, 1s));
  scene.world.run(scope);
  scene.times.clear();
  scope.spawn("receive", receive_many(scene, *first_far, 1));
  scope.spawn("receive", receive_many(scene, *scene.far, 1));
  scene.world.run(scope);
  EXPECT_EQ(scene.times, (std::vector<TimePoint>{begin + 3ms, begin + 4ms}));
  EXPECT_EQ(scene.world.ingress("ps").backlog_bytes_max(), 1000U);
}

TEST(SimNetwork, full_egress_queue_holds_the_sender_back) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 5, 1s));
  scene.world.run(scope);
  // Two frames fit into the queue of 2000 bytes; each later one waits for 1000 bytes to leave.
  const std::vector<TimePoint> expected{
      TimePoint{4ms}, TimePoint{4ms}, TimePoint{5ms}, TimePoint{6ms}, TimePoint{7ms}};
  EXPECT_EQ(scene.times, expected);
}

TEST(SimNetwork, peer_that_does_not_read_stops_the_sender_until_its_patience_ends) {
  WorldOptions options;
  options.fabric.window_bytes = 3000;
  Scene scene(options);
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 10, 100ms));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::deadline);
  EXPECT_EQ(scene.times.size(), 4U);  // three frames fill the window
  EXPECT_EQ(scene.times.back(), TimePoint{105ms});
}

TEST(SimNetwork, reading_reopens_the_window) {
  WorldOptions options;
  options.fabric.window_bytes = 3000;
  Scene scene(options);
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 10, 100ms));
  scope.spawn("receive", receive_many(scene, *scene.far, 10));
  scene.world.run(scope);
  EXPECT_EQ(scene.frames.size(), 10U);
  EXPECT_TRUE(scene.errors.empty());
}

TEST(SimNetwork, closing_lets_what_was_sent_arrive_and_then_disconnects) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 2, 1s));
  scope.spawn("close", close_at(scene, *scene.near, TimePoint{4500us}));
  scope.spawn("receive", receive_until_error(scene, *scene.far, time_point_max));
  scene.world.run(scope);
  EXPECT_EQ(scene.frames.size(), 2U);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::disconnected);
  EXPECT_EQ(scene.now(), TimePoint{8ms});
}

TEST(SimNetwork, frame_cut_off_by_a_crash_never_arrives) {
  // Five frames take 5 ms to leave; the crash comes while the fourth waits for the queue.
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 5, 1s));
  scope.spawn("crash", crash_at(scene, "w0", TimePoint{5500us}));
  scope.spawn("receive", receive_until_error(scene, *scene.far, time_point_max));
  scene.world.run(scope);
  EXPECT_EQ(scene.frames.size(), 3U);
  ASSERT_EQ(scene.errors.size(), 2U);
  EXPECT_EQ(scene.errors[0].code, Errc::closed);        // at the crashed side
  EXPECT_EQ(scene.errors[1].code, Errc::disconnected);  // at the other
}

TEST(SimNetwork, crashed_listener_refuses_and_ends_its_accept) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scene.world.crash("ps");
  scope.spawn("connect", try_connect(scene, Endpoint{.host = "ps", .port = 7000}, time_point_max));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::unreachable);
  EXPECT_EQ(scene.errors[0].detail, "cannot connect to ps:7000: Connection refused");
}

TEST(SimNetwork, silence_of_a_clogged_node_is_a_deadline) {
  Scene scene;
  join(scene);
  scene.world.set_clogged("w0", true);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 1, 1s));
  scope.spawn("receive", receive_until_error(scene, *scene.far, TimePoint{50ms}));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::deadline);
  EXPECT_EQ(scene.now(), TimePoint{50ms});
}

TEST(SimNetwork, what_a_clog_held_back_arrives_in_order_afterwards) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("clog", clog_between(scene, "ps", TimePoint{4500us}, TimePoint{30ms}));
  scope.spawn("send", send_many(scene, *scene.near, 3, 1s));
  scope.spawn("receive", receive_many(scene, *scene.far, 3));
  scene.world.run(scope);
  ASSERT_EQ(scene.frames.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scene.frames[i], make_frame(1, payload_words_of_1000_bytes, i + 1));
  }
  EXPECT_EQ(scene.now(), TimePoint{33ms});  // three frames pass the ingress from 30 ms on
}

TEST(SimNetwork, connecting_fails_for_its_several_reasons) {
  Scene scene;
  scene.world.set_clogged("w1", true);
  TaskScope scope(scene.world.executor(), "test");
  const TimePoint deadline{1s};
  scope.spawn("name", try_connect(scene, Endpoint{.host = "nobody", .port = 1}, deadline));
  scope.spawn("port", try_connect(scene, Endpoint{.host = "ps", .port = 1}, deadline));
  scope.spawn("silence", try_connect(scene, Endpoint{.host = "w1", .port = 1}, deadline));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 3U);
  EXPECT_EQ(scene.errors[0].code, Errc::bad_address);
  EXPECT_EQ(scene.errors[1].code, Errc::unreachable);
  EXPECT_EQ(scene.errors[2].code, Errc::deadline);
  EXPECT_EQ(scene.times, (std::vector<TimePoint>{TimePoint{}, TimePoint{4ms}, deadline}));
}

TEST(SimNetwork, listening_fails_for_its_several_reasons) {
  Scene scene;
  Network& network = scene.world.host("ps").network;
  const auto first = network.listen(Endpoint{.host = "0.0.0.0", .port = 0});
  ASSERT_TRUE(first);
  const Endpoint taken = (*first)->local();
  EXPECT_EQ(taken.host, "ps");
  EXPECT_GE(taken.port, 49152);
  EXPECT_EQ(network.listen(taken).error().code, Errc::address_in_use);
  EXPECT_EQ(network.listen(Endpoint{.host = "w0", .port = 1}).error().code, Errc::bad_address);
  (*first)->close();
  EXPECT_TRUE(network.listen(taken));
}

TEST(SimNetwork, cancelled_receive_closes_the_connection) {
  Scene scene;
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("receive", receive_until_error(scene, *scene.far, time_point_max));
  scene.world.run_until(TimePoint{10ms});
  scope.cancel();
  scene.world.run(scope);
  EXPECT_TRUE(scene.errors.empty());  // operation_aborted, no outcome
  TaskScope after(scene.world.executor(), "after");
  after.spawn("receive", receive_until_error(scene, *scene.far, time_point_max));
  after.spawn("receive", receive_until_error(scene, *scene.near, time_point_max));
  scene.world.run(after);
  ASSERT_EQ(scene.errors.size(), 2U);
  EXPECT_EQ(scene.errors[0].code, Errc::closed);
  EXPECT_EQ(scene.errors[1].code, Errc::disconnected);
}

TEST(SimNetwork, frames_over_the_limits_are_refused_by_the_receiver) {
  WorldOptions options;
  options.fabric.limits.payload_bytes_max = 512;
  Scene scene(options);
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 1, 1s));
  scope.spawn("receive", receive_until_error(scene, *scene.far, time_point_max));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::bad_frame);
}

TEST(SimNetwork, payload_scale_charges_the_wire_for_a_larger_model) {
  WorldOptions options;
  options.fabric.payload_scale = 3;
  Scene scene(options);
  join(scene);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send_many(scene, *scene.near, 1, 1s));
  scope.spawn("receive", receive_many(scene, *scene.far, 1));
  scene.world.run(scope);
  EXPECT_EQ(scene.near->stats().bytes_sent, 24 + payload_words_of_1000_bytes * 24);
  EXPECT_EQ(scene.now(), TimePoint{4ms + 2ms + 2952us});
}

}  // namespace
}  // namespace stagger
