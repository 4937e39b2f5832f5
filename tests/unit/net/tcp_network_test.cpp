#include "net/real/tcp_network.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <unistd.h>

#include "tests/unit/net/frames.hpp"
#include "tests/unit/net/real_world.hpp"

namespace stagger {
namespace {

using boost::asio::ip::tcp;

/// Long enough for any machine; a test that needs it has failed.
constexpr Duration ample = 30s;

/// Short enough to wait for.
constexpr Duration brief = 50ms;

struct Ends {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> near;
  std::unique_ptr<Connection> far;
};

Task<void> connect_near(Host host, Ends& ends) {
  const Endpoint remote = ends.listener->local();
  auto connection = co_await host.network.connect(remote, host.clock.now() + ample);
  ends.near = std::move(connection.value());
}

Task<void> accept_far(Ends& ends) {
  auto connection = co_await ends.listener->accept();
  ends.far = std::move(connection.value());
}

Task<void> send_all(Connection& connection, std::vector<TestFrame> frames) {
  for (TestFrame& frame : frames) {
    (co_await send_frame(connection, std::move(frame), ample)).value();
  }
}

Task<void> receive_count(
    Host host, Connection& connection, std::size_t count, std::vector<TestFrame>& received) {
  for (std::size_t i = 0; i < count; ++i) {
    auto frame = co_await receive_frame(connection, host.clock.now() + ample, ample);
    received.push_back(std::move(frame.value()));
  }
}

/// Receives frames until it fails, and notes why.
Task<void> receive_until_error(
    Connection& connection, TimePoint deadline, Duration stall_max, std::vector<Error>& errors) {
  while (true) {
    const auto frame = co_await receive_frame(connection, deadline, stall_max);
    if (frame) continue;
    errors.push_back(frame.error());
    co_return;
  }
}

Task<void> send_until_error(
    Connection& connection, Duration stall_max, std::vector<Error>& errors) {
  while (true) {
    TestFrame frame = make_frame(1, 1 << 17, 1);
    const Result<void> sent = co_await send_frame(connection, std::move(frame), stall_max);
    if (sent) continue;
    errors.push_back(sent.error());
    co_return;
  }
}

Task<void> close_at(Clock& clock, Connection& connection, TimePoint time) {
  co_await clock.sleep_until(time);
  connection.close();
}

Task<void> cancel_at(Clock& clock, TaskScope& scope, TimePoint time) {
  co_await clock.sleep_until(time);
  scope.cancel();
}

Task<void> try_connect(Host host, Endpoint remote, TimePoint deadline, std::vector<Error>& errors) {
  const auto connection = co_await host.network.connect(remote, deadline);
  if (!connection) errors.push_back(connection.error());
}

Task<void> accept_until_closed(Listener& listener, std::vector<Error>& errors) {
  const auto connection = co_await listener.accept();
  if (!connection) errors.push_back(connection.error());
}

Task<void> close_listener_at(Clock& clock, Listener& listener, TimePoint time) {
  co_await clock.sleep_until(time);
  listener.close();
}

class TcpNetworkTest : public RealWorld {
 protected:
  void listen() {
    ends_.listener = host_.network.listen(Endpoint{.host = "127.0.0.1", .port = 0}).value();
  }

  void join() {
    listen();
    scope_.spawn("connect", connect_near(host_, ends_));
    scope_.spawn("accept", accept_far(ends_));
    run();
  }

  /// Accepts a client that is no Connection of ours.
  tcp::socket join_raw() {
    listen();
    tcp::socket client(real_.context());
    client.connect(
        tcp::endpoint(boost::asio::ip::address_v4::loopback(), ends_.listener->local().port));
    scope_.spawn("accept", accept_far(ends_));
    run();
    return client;
  }

  Error receive_error(Duration patience, Duration stall_max) {
    scope_.spawn("receive", receive_until_error(*ends_.far, soon(patience), stall_max, errors_));
    run();
    EXPECT_FALSE(errors_.empty());
    return errors_.back();
  }

  Ends ends_;
  std::vector<Error> errors_;
};

using Tcp = TcpNetworkTest;

bool contains(const Error& error, const std::string& text) {
  return error.detail.find(text) != std::string::npos;
}

TEST_F(Tcp, large_frames_pass_both_ways_intact_at_once) {
  join();
  std::vector<TestFrame> there;
  std::vector<TestFrame> back;
  for (std::uint64_t i = 0; i < 3; ++i) {
    there.push_back(make_frame(3 + i * 997, (1U << 21U) - i * 12345, 10 + i));  // up to 16 MiB
    back.push_back(make_frame(1 + i, (1U << 20U) + i, 20 + i));
  }
  std::vector<TestFrame> arrived_there;
  std::vector<TestFrame> arrived_back;
  scope_.spawn("send there", send_all(*ends_.near, there));
  scope_.spawn("send back", send_all(*ends_.far, back));
  scope_.spawn("receive there", receive_count(host_, *ends_.far, there.size(), arrived_there));
  scope_.spawn("receive back", receive_count(host_, *ends_.near, back.size(), arrived_back));
  run();
  EXPECT_TRUE(arrived_there == there);
  EXPECT_TRUE(arrived_back == back);
  const LinkStats near = ends_.near->stats();
  EXPECT_EQ(near.bytes_sent, ends_.far->stats().bytes_received);
  EXPECT_GT(near.bytes_sent, std::uint64_t{3} << 23U);
  EXPECT_GT(near.round_trip, Duration{0});
}

TEST_F(Tcp, many_small_frames_keep_their_order) {
  join();
  std::vector<TestFrame> frames;
  frames.reserve(500);
  for (std::uint64_t i = 0; i < 500; ++i)
    frames.push_back(make_frame(1 + i % 7, i % 3, i));
  std::vector<TestFrame> arrived;
  scope_.spawn("send", send_all(*ends_.near, frames));
  scope_.spawn("receive", receive_count(host_, *ends_.far, frames.size(), arrived));
  run();
  EXPECT_TRUE(arrived == frames);
}

TEST_F(Tcp, silent_peer_is_a_deadline_and_later_calls_say_closed) {
  join();
  const Error silent = receive_error(brief, ample);
  EXPECT_EQ(silent.code, Errc::deadline);
  EXPECT_TRUE(contains(silent, ends_.far->peer() + " is silent")) << silent.detail;
  EXPECT_EQ(receive_error(brief, ample).code, Errc::closed);
  scope_.spawn("send", send_until_error(*ends_.far, brief, errors_));
  run();
  EXPECT_EQ(errors_.back().code, Errc::closed);
}

TEST_F(Tcp, peer_that_takes_nothing_is_a_deadline) {
  join();
  scope_.spawn("send", send_until_error(*ends_.near, brief, errors_));
  run();
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(errors_[0].code, Errc::deadline);
  EXPECT_TRUE(contains(errors_[0], "takes nothing more")) << errors_[0].detail;
}

TEST_F(Tcp, peer_that_closes_between_frames_is_disconnected) {
  join();
  ends_.near->close();
  const Error error = receive_error(ample, ample);
  EXPECT_EQ(error.code, Errc::disconnected);
  EXPECT_EQ(error.detail, ends_.far->peer() + " closed the connection");
}

TEST_F(Tcp, peer_that_closes_inside_a_frame_is_told_from_one_that_finished) {
  tcp::socket client = join_raw();
  const std::array<std::uint32_t, 2> table{0, 4};
  boost::asio::write(client, boost::asio::buffer(table));
  client.close();
  const Error error = receive_error(ample, ample);
  EXPECT_EQ(error.code, Errc::disconnected);
  EXPECT_TRUE(contains(error, "inside a frame")) << error.detail;
}

TEST_F(Tcp, payload_that_stops_half_way_is_a_deadline) {
  tcp::socket client = join_raw();
  const std::array<std::uint32_t, 8> start{1, 1, 4, 0, 11, 12, 13, 14};  // 8 of 32 payload bytes
  boost::asio::write(client, boost::asio::buffer(start));
  const Error error = receive_error(ample, brief);
  EXPECT_EQ(error.code, Errc::deadline);
  EXPECT_TRUE(contains(error, "inside a frame")) << error.detail;
}

TEST_F(Tcp, garbage_is_no_frame_and_closes_the_connection) {
  tcp::socket client = join_raw();
  boost::asio::write(client, boost::asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")));
  const Error error = receive_error(ample, ample);
  EXPECT_EQ(error.code, Errc::bad_frame);
  EXPECT_TRUE(contains(error, ends_.far->peer())) << error.detail;
  EXPECT_TRUE(contains(error, "segments")) << error.detail;
  EXPECT_EQ(receive_error(ample, ample).code, Errc::closed);
}

TEST_F(Tcp, frame_over_the_limits_is_refused_before_it_is_read) {
  tcp::socket client = join_raw();
  const std::array<std::uint32_t, 4> table{1, 1, 0xffffffffU, 0};
  boost::asio::write(client, boost::asio::buffer(table));
  const Error error = receive_error(ample, ample);
  EXPECT_EQ(error.code, Errc::bad_frame);
  EXPECT_TRUE(contains(error, "34359738360 bytes")) << error.detail;
}

TEST_F(Tcp, reset_by_the_peer_names_the_systems_reason) {
  tcp::socket client = join_raw();
  client.set_option(boost::asio::socket_base::linger(true, 0));
  client.close();
  const Error error = receive_error(ample, ample);
  EXPECT_EQ(error.code, Errc::disconnected);
  EXPECT_TRUE(contains(error, "reset by peer")) << error.detail;
}

TEST_F(Tcp, own_close_ends_what_is_pending_with_closed) {
  join();
  scope_.spawn("receive", receive_until_error(*ends_.far, soon(ample), ample, errors_));
  scope_.spawn("send", send_until_error(*ends_.far, ample, errors_));
  scope_.spawn("close", close_at(host_.clock, *ends_.far, soon(brief)));
  run();
  ASSERT_EQ(errors_.size(), 2U);
  EXPECT_EQ(errors_[0].code, Errc::closed);
  EXPECT_EQ(errors_[1].code, Errc::closed);
}

TEST_F(Tcp, cancelled_receive_closes_the_connection) {
  join();
  TaskScope reading(real_.executor(), "reading");
  reading.spawn("receive", receive_until_error(*ends_.far, time_point_max, ample, errors_));
  scope_.spawn("cancel", cancel_at(host_.clock, reading, soon(brief)));
  run();
  EXPECT_EQ(reading.size(), 0U);
  EXPECT_TRUE(errors_.empty());
  EXPECT_EQ(receive_error(ample, ample).code, Errc::closed);
}

TEST_F(Tcp, taken_address_names_the_address_its_owner_and_what_to_do) {
  listen();
  const Endpoint taken = ends_.listener->local();
  const auto second = host_.network.listen(taken);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::address_in_use);
  EXPECT_TRUE(contains(second.error(), to_string(taken))) << second.error().detail;
  EXPECT_TRUE(contains(second.error(), "process " + std::to_string(getpid())))
      << second.error().detail;
  EXPECT_TRUE(contains(second.error(), "choose another port")) << second.error().detail;
}

TEST_F(Tcp, foreign_address_cannot_be_listened_on) {
  const auto listener = host_.network.listen(Endpoint{.host = "203.0.113.1", .port = 0});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, Errc::bad_address);
  EXPECT_TRUE(contains(listener.error(), "203.0.113.1:0")) << listener.error().detail;
}

TEST_F(Tcp, port_where_nobody_listens_is_unreachable) {
  listen();
  const Endpoint gone = ends_.listener->local();
  ends_.listener.reset();
  scope_.spawn("connect", try_connect(host_, gone, soon(ample), errors_));
  run();
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(errors_[0].code, Errc::unreachable);
  EXPECT_TRUE(contains(errors_[0], to_string(gone))) << errors_[0].detail;
  EXPECT_TRUE(contains(errors_[0], "refused")) << errors_[0].detail;
}

TEST_F(Tcp, name_with_several_addresses_is_tried_to_the_end) {
  // "localhost" may be ::1 first; only 127.0.0.1 answers.
  listen();
  const Endpoint named{.host = "localhost", .port = ends_.listener->local().port};
  scope_.spawn("accept", accept_far(ends_));
  scope_.spawn("connect", try_connect(host_, named, soon(ample), errors_));
  run();
  EXPECT_TRUE(errors_.empty());
  EXPECT_NE(ends_.far, nullptr);
}

TEST_F(Tcp, closing_the_listener_ends_accept) {
  listen();
  scope_.spawn("accept", accept_until_closed(*ends_.listener, errors_));
  scope_.spawn("close", close_listener_at(host_.clock, *ends_.listener, soon(brief)));
  run();
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(errors_[0].code, Errc::closed);
}

}  // namespace
}  // namespace stagger
