#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/sim/world.hpp"
#include "ps/client.hpp"

// A worker's questions for the PS's clock, and what it makes of the answers.
namespace stagger {
namespace {

const Endpoint ps{.host = "ps", .port = 7000};
constexpr Duration way = 300us;

class NoEvents final : public ClientEvents {
 public:
  Iteration hold_iteration() override { return {}; }

  void prepared(const Prepare& /*prepare*/, Iteration /*hold*/) override {}

  void committed(const Commit& /*commit*/) override {}

  Heartbeat take_progress() override { return {}; }
};

/// How a PS answers.
struct Manners {
  std::uint64_t number_added = 0;  ///< to the ping's
  std::uint32_t times = 1;         ///< each answer
  std::uint32_t unasked = 0;       ///< answers before the first question
  Duration ahead{0};               ///< what it says beyond its own clock
  std::uint32_t answers_max = 1000;
  bool planned = true;  ///< its plan is there at once
};

/// What the PS heard.
struct Heard {
  std::vector<std::uint64_t> pings;
};

Task<void> say(Connection& connection, const Message& message) {
  const auto head = encode_message(job_hash("clock"), message);
  const FrameView frame{.head = std::as_bytes(std::span(head)), .payload = {}};
  co_await connection.send(frame, 5s);
}

Pong pong_of(const Host& host, std::uint64_t number, const Manners& manners) {
  const PsTime now = as_ps_time(host.clock.now() + manners.ahead);
  return {.number = number + manners.number_added, .heard = now, .answered = now};
}

Task<void> be_ps(Host host, Manners manners, Heard& heard) {
  auto listener = host.network.listen(ps).value();
  auto accepted = co_await listener->accept();
  auto connection = std::move(accepted.value());
  co_await connection->receive_head(time_point_max);  // hello
  const Message welcome = Welcome{.rank = WorkerId(0), .incarnation = Incarnation(1)};
  co_await say(*connection, welcome);
  for (std::uint32_t i = 0; i < manners.unasked; ++i) {
    const Message pong = pong_of(host, i, manners);
    co_await say(*connection, pong);
  }
  std::uint32_t answers = 0;
  for (;;) {
    const auto frame = co_await connection->receive_head(time_point_max);
    if (!frame) co_return;
    const auto message = decode_message(job_hash("clock"), *frame);
    const auto* ping = message ? std::get_if<Ping>(&*message) : nullptr;
    if (ping == nullptr) continue;
    heard.pings.push_back(ping->number);
    if (answers++ >= manners.answers_max) continue;
    for (std::uint32_t i = 0; i < manners.times; ++i) {
      const Message pong = pong_of(host, ping->number, manners);
      co_await say(*connection, pong);
    }
  }
}

Task<void> join(Client& client, TaskScope& scope, ClientEvents& events, bool planned) {
  co_await client.join();
  client.serve(scope, events);
  if (planned) client.ready();
}

class ClientClock : public testing::Test {
 protected:
  ClientClock() {
    const LinkOptions link{.rate_bits_per_second = 1e9, .latency = way / 2};
    world_.add_node("ps", {.egress = link, .ingress = link, .clock = {.offset = 100s}});
    world_.add_node("worker", {.egress = link, .ingress = link, .clock = {.offset = 7s}});
    ClientOptions options;
    options.ps = ps;
    options.hello.job = "clock";
    client_ = std::make_unique<Client>(world_.host("worker"), options);
  }

  void TearDown() override {
    scope_.cancel();
    world_.run(scope_);
  }

  /// So many seconds with such a PS.
  void live(const Manners& manners, Duration time) {
    scope_.spawn("ps", be_ps(world_.host("ps"), manners, heard_));
    scope_.spawn("worker", join(*client_, scope_, events_, manners.planned));
    world_.run_until(TimePoint{time});
    EXPECT_EQ(scope_.failure(), nullptr);
  }

  std::optional<ClockReading> reading() {
    return client_->clock().at(world_.host("worker").clock.now());
  }

  SimWorld world_{1};
  NoEvents events_;
  Heard heard_;
  TaskScope scope_{world_.executor(), "test"};
  std::unique_ptr<Client> client_;
};

TEST_F(ClientClock, is_known_soon_after_the_plan_from_one_question_after_the_other) {
  live({}, 500ms);
  EXPECT_EQ(heard_.pings.size(), 16U);
  ASSERT_TRUE(reading().has_value());
  EXPECT_LE(std::chrono::abs(reading()->offset - 93s), reading()->uncertainty);
  EXPECT_LT(reading()->uncertainty, 2 * way);
}

TEST_F(ClientClock, is_not_asked_for_while_the_plan_is_made_and_the_link_measured) {
  live({.planned = false}, 5s);
  EXPECT_TRUE(heard_.pings.empty());
}

TEST_F(ClientClock, is_asked_for_again_with_every_heartbeat) {
  live({}, 10s + 500ms);
  EXPECT_GE(heard_.pings.size(), 25U);
  EXPECT_LE(heard_.pings.size(), 27U);
  EXPECT_LT(reading()->uncertainty, 2 * way);
}

TEST_F(ClientClock, takes_no_notice_of_answers_that_no_question_awaits) {
  live({.number_added = 5, .times = 2, .unasked = 40, .ahead = 1000s}, 3s);
  EXPECT_FALSE(reading().has_value());
  EXPECT_EQ(heard_.pings.size(), 1U);  // it still awaits the first
}

TEST_F(ClientClock, counts_an_answer_once) {
  live({.times = 3}, 500ms);
  EXPECT_EQ(heard_.pings.size(), 16U);
  EXPECT_LE(std::chrono::abs(reading()->offset - 93s), reading()->uncertainty);
}

TEST_F(ClientClock, stays_unknown_when_the_answers_cannot_be) {
  live({.ahead = Duration::max() / 2}, 3s);
  EXPECT_FALSE(reading().has_value());
  EXPECT_GE(heard_.pings.size(), 16U);
}

TEST_F(ClientClock, is_not_asked_for_again_while_an_answer_is_awaited) {
  live({.answers_max = 4}, 4s);
  EXPECT_EQ(heard_.pings.size(), 5U);
  EXPECT_TRUE(reading().has_value());
}

}  // namespace
}  // namespace stagger
