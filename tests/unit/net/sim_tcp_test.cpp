#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/sim/network.hpp"
#include "net/sim/world.hpp"
#include "tests/unit/net/frames.hpp"

namespace stagger {
namespace {

constexpr std::size_t megabyte_words = (std::size_t{1} << 20) / 8;

/// Workers on fast cards; the PS's port passes 100 Mbit/s and queues 64 KiB.
struct Scene {
  explicit Scene(std::uint64_t queue_bytes = 64 << 10, TcpModelOptions tcp = {})
      : world(7, {.fabric = {.limits = {}, .tcp = tcp}, .log_sink = {}}) {
    const LinkOptions fast{.rate_bits_per_second = 1e10, .latency = 20us};
    const LinkOptions port{
        .rate_bits_per_second = 1e8, .latency = 20us, .queue_bytes_max = queue_bytes};
    world.add_node("ps", {.egress = fast, .ingress = port});
    listener = world.host("ps").network.listen(Endpoint{.host = "ps", .port = 7000}).value();
  }

  TimePoint now() { return world.clock().now(); }

  SimWorld world;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Connection>> near;
  std::vector<std::unique_ptr<Connection>> far;
  std::vector<TestFrame> frames;
  std::vector<Error> errors;
  std::vector<TimePoint> times;
};

Task<void> dial(Scene& scene, std::string node) {
  Network& network = scene.world.host(node).network;
  const Endpoint remote{.host = "ps", .port = 7000};
  auto connection = co_await network.connect(remote, time_point_max);
  scene.near.push_back(std::move(connection.value()));
}

Task<void> accept_one(Scene& scene) {
  auto connection = co_await scene.listener->accept();
  scene.far.push_back(std::move(connection.value()));
}

void join(Scene& scene, int workers) {
  for (int worker = 0; worker < workers; ++worker) {
    scene.world.run("dial", dial(scene, "w" + std::to_string(worker)));
    scene.world.run("accept", accept_one(scene));
  }
}

Task<void> send(Scene& scene, Connection& connection, TestFrame frame, Duration stall_max) {
  const Result<void> sent = co_await send_frame(connection, std::move(frame), stall_max);
  if (!sent) scene.errors.push_back(sent.error());
  scene.times.push_back(scene.now());
}

Task<void> receive(Scene& scene, Connection& connection, int count) {
  for (int i = 0; i < count; ++i) {
    Result<TestFrame> frame = co_await receive_frame(connection, time_point_max, 1s);
    if (!frame) {
      scene.errors.push_back(frame.error());
      co_return;
    }
    scene.frames.push_back(std::move(*frame));
  }
}

Task<void> receive_head(Scene& scene, Connection& connection) {
  const Result<FrameHead> head = co_await connection.receive_head(time_point_max);
  if (!head) scene.errors.push_back(head.error());
  scene.times.push_back(scene.now());
}

Task<void> close_at(Scene& scene, Connection& connection, TimePoint time) {
  co_await scene.world.clock().sleep_until(time);
  connection.close();
}

TEST(SimTcp, one_sender_fills_the_port_once_its_window_has_opened) {
  Scene scene;
  join(scene, 1);
  const TimePoint begin = scene.now();
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("receive", receive(scene, *scene.far[0], 1));
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, megabyte_words, 1), 1s));
  scene.world.run(scope);
  ASSERT_EQ(scene.frames.size(), 1U);
  EXPECT_EQ(scene.frames[0], make_frame(1, megabyte_words, 1));
  const auto& counters = scene.world.port("ps").counters();
  // 1 MiB in 725 segments, with 66 bytes before each.
  EXPECT_GE(counters.bytes, (1U << 20U) + 725 * 66);
  EXPECT_LE(counters.queue_bytes_peak, 64U << 10U);
  EXPECT_LT(scene.now() - begin, 2 * from_seconds((1 << 20) * 8 / 1e8));
}

/// So many senders of one MiB each, at once. Returns when all has arrived.
Duration all_at_once(Scene& scene, int workers) {
  join(scene, workers);
  const TimePoint begin = scene.now();
  TaskScope scope(scene.world.executor(), "test");
  for (std::size_t worker = 0; worker < scene.near.size(); ++worker) {
    scope.spawn("receive", receive(scene, *scene.far[worker], 1));
    scope.spawn(
        "send", send(scene, *scene.near[worker], make_frame(1, megabyte_words, worker + 1), 10s));
  }
  scene.world.run(scope);
  return scene.now() - begin;
}

TEST(SimTcp, many_senders_overflow_a_shallow_port_and_all_bytes_arrive_nevertheless) {
  Scene scene;
  const Duration took = all_at_once(scene, 16);
  EXPECT_TRUE(scene.errors.empty());
  ASSERT_EQ(scene.frames.size(), 16U);
  std::uint64_t resent = 0;
  for (const auto& connection : scene.near)
    resent += connection->stats().retransmissions;
  const auto& counters = scene.world.port("ps").counters();
  EXPECT_GT(counters.drops, 0U);
  EXPECT_GE(resent, counters.drops);
  const Duration without_loss = from_seconds(16 * (1 << 20) * 8 / 1e8);
  EXPECT_GT(took, without_loss);
  EXPECT_LT(took, 3 * without_loss);
}

TEST(SimTcp, a_port_with_room_for_all_windows_drops_nothing) {
  Scene scene(std::uint64_t{64} << 20);
  all_at_once(scene, 16);
  EXPECT_EQ(scene.world.port("ps").counters().drops, 0U);
  EXPECT_EQ(scene.near[0]->stats().retransmissions, 0U);
}

TEST(SimTcp, the_same_seed_gives_the_same_trace) {
  Scene one;
  Scene other;
  EXPECT_EQ(all_at_once(one, 8), all_at_once(other, 8));
  EXPECT_EQ(one.world.trace_hash(), other.world.trace_hash());
  EXPECT_EQ(one.world.port("ps").counters().drops, other.world.port("ps").counters().drops);
}

TEST(SimTcp, a_head_can_be_read_before_its_payload_has_come) {
  Scene scene;
  join(scene, 1);
  const TimePoint begin = scene.now();
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("head", receive_head(scene, *scene.far[0]));
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, megabyte_words, 1), 1s));
  scene.world.run(scope);
  ASSERT_EQ(scene.times.size(), 2U);
  EXPECT_LT(scene.times[0], begin + 1ms);
  EXPECT_GT(scene.times[1], begin + 50ms);
  EXPECT_TRUE(scene.errors.empty());
}

TEST(SimTcp, a_peer_that_does_not_read_stops_the_sender_until_its_patience_ends) {
  Scene scene(64 << 10, {.receive_bytes_max = 128 << 10});
  join(scene, 1);
  const TimePoint begin = scene.now();
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, megabyte_words, 1), 500ms));
  scene.world.run(scope);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::deadline);
  EXPECT_GT(scene.now(), begin + 500ms);
}

TEST(SimTcp, what_was_sent_before_a_close_arrives_and_then_the_end) {
  Scene scene;
  join(scene, 1);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, 4096, 1), 1s));
  scope.spawn("close", close_at(scene, *scene.near[0], scene.now() + 10us));
  scope.spawn("receive", receive(scene, *scene.far[0], 2));
  scene.world.run(scope);
  EXPECT_EQ(scene.frames.size(), 1U);
  ASSERT_EQ(scene.errors.size(), 1U);
  EXPECT_EQ(scene.errors[0].code, Errc::disconnected);
}

TEST(SimTcp, a_frame_cut_off_by_a_crash_never_arrives) {
  Scene scene;
  join(scene, 1);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, megabyte_words, 1), 1s));
  scope.spawn("receive", receive(scene, *scene.far[0], 1));
  scene.world.run_until(scene.now() + 10ms);
  scene.world.crash("w0");
  scene.world.run(scope);
  EXPECT_TRUE(scene.frames.empty());
  ASSERT_EQ(scene.errors.size(), 2U);
  EXPECT_EQ(scene.errors[0].code, Errc::closed);
  EXPECT_EQ(scene.errors[1].code, Errc::disconnected);
}

TEST(SimTcp, silence_of_a_node_delays_and_loses_nothing) {
  Scene scene;
  join(scene, 1);
  TaskScope scope(scene.world.executor(), "test");
  scope.spawn("send", send(scene, *scene.near[0], make_frame(1, megabyte_words, 1), 60s));
  scope.spawn("receive", receive(scene, *scene.far[0], 1));
  scene.world.run_until(scene.now() + 10ms);
  scene.world.set_clogged("ps", true);
  scene.world.run_until(scene.now() + 500ms);
  EXPECT_TRUE(scene.frames.empty());
  scene.world.set_clogged("ps", false);
  scene.world.run(scope);
  EXPECT_EQ(scene.frames.size(), 1U);
}

}  // namespace
}  // namespace stagger
