#include "ps/outbox.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/scope.hpp"
#include "net/sim/world.hpp"
#include "tensor/arena.hpp"

namespace stagger {
namespace {

/// Writes nowhere, and as slowly as the test says.
class RecordingConnection final : public Connection {
 public:
  explicit RecordingConnection(Clock& clock) : clock_(clock) {}

  Task<Result<void>> send(FrameView frame, Duration stall_max) override {
    co_await clock_.sleep_until(clock_.now() + 1ms);
    if (failing) co_return Error{.code = Errc::disconnected, .detail = "cut"};
    stalls.push_back(stall_max);
    const auto* words = reinterpret_cast<const std::uint64_t*>(frame.head.data());
    heads.push_back(*words);
    payloads.push_back(frame.payload);
    co_return Result<void>{};
  }

  Task<Result<FrameHead>> receive_head(TimePoint /*deadline*/) override { co_return FrameHead{}; }

  Task<Result<void>> receive_payload(std::span<std::byte> /*target*/, Duration /*stall*/) override {
    co_return Result<void>{};
  }

  void close() override {}

  const std::string& peer() const override { return peer_; }

  LinkStats stats() const override { return {}; }

  bool failing = false;
  std::vector<std::uint64_t> heads;
  std::vector<std::span<const std::byte>> payloads;
  std::vector<Duration> stalls;

 private:
  Clock& clock_;
  std::string peer_ = "nowhere:1";
};

class OutboxTest : public testing::Test {
 protected:
  static Outbox::Item item(std::uint64_t number) {
    return {.head = {number}, .payload = {}, .keep = {}};
  }

  static Task<void> write(Outbox& outbox, std::optional<Result<void>>& result) {
    result = co_await outbox.write_frames();
  }

  static Task<void> send(Outbox& outbox, std::uint64_t number, std::vector<bool>& sent) {
    sent.push_back(co_await outbox.send(item(number)));
  }

  SimWorld world_{1};
  RecordingConnection connection_{world_.clock()};
  Outbox outbox_{world_.executor(), connection_, 2, 5s};
  std::optional<Result<void>> written_;
};

TEST_F(OutboxTest, writes_in_order_and_ends_when_closed_and_empty) {
  EXPECT_TRUE(outbox_.post(item(1)));
  EXPECT_TRUE(outbox_.post(item(2)));
  outbox_.close();
  world_.run("write", write(outbox_, written_));
  EXPECT_EQ(connection_.heads, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(connection_.stalls, (std::vector<Duration>{5s, 5s}));
  EXPECT_TRUE(written_.value().has_value());
}

TEST_F(OutboxTest, takes_no_more_than_its_bound_but_for_urgent_items) {
  EXPECT_TRUE(outbox_.post(item(1)));
  EXPECT_TRUE(outbox_.post(item(2)));
  EXPECT_FALSE(outbox_.post(item(3)));
  outbox_.post_urgent(item(4));
  outbox_.close();
  world_.run("write", write(outbox_, written_));
  EXPECT_EQ(connection_.heads, (std::vector<std::uint64_t>{1, 2, 4}));
}

TEST_F(OutboxTest, takes_nothing_once_closed) {
  outbox_.close();
  EXPECT_FALSE(outbox_.post(item(1)));
  outbox_.post_urgent(item(2));
  std::vector<bool> sent;
  world_.run("send", send(outbox_, 3, sent));
  EXPECT_EQ(sent, std::vector<bool>{false});
  world_.run("write", write(outbox_, written_));
  EXPECT_TRUE(connection_.heads.empty());
}

TEST_F(OutboxTest, lets_a_sender_wait_for_room) {
  std::vector<bool> sent;
  TaskScope scope(world_.executor(), "test");
  for (std::uint64_t number = 1; number <= 5; ++number) {
    scope.spawn("send", send(outbox_, number, sent));
  }
  world_.run_until_idle();
  EXPECT_EQ(sent.size(), 2U);
  scope.spawn("write", write(outbox_, written_));
  world_.run_until_idle();
  EXPECT_EQ(sent, std::vector<bool>(5, true));
  EXPECT_EQ(connection_.heads, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  outbox_.close();
  world_.run(scope);
}

TEST_F(OutboxTest, sends_the_payload_itself_and_keeps_it_alive) {
  auto values = std::make_shared<AlignedFloats>(5);
  const std::weak_ptr<AlignedFloats> watched = values;
  const auto* address = reinterpret_cast<const std::byte*>(values->span().data());
  const std::span<const float> payload = values->span();
  outbox_.post({.head = {1}, .payload = payload, .keep = std::move(values)});
  EXPECT_FALSE(watched.expired());
  outbox_.close();
  world_.run("write", write(outbox_, written_));
  ASSERT_EQ(connection_.payloads.size(), 1U);
  EXPECT_EQ(connection_.payloads[0].data(), address);
  EXPECT_EQ(connection_.payloads[0].size(), 24U);  // with the padding to whole words
  EXPECT_TRUE(watched.expired());
}

TEST_F(OutboxTest, ends_with_the_error_of_its_connection) {
  connection_.failing = true;
  outbox_.post(item(1));
  world_.run("write", write(outbox_, written_));
  ASSERT_FALSE(written_.value().has_value());
  EXPECT_EQ(written_->error().detail, "cut");
}

}  // namespace
}  // namespace stagger
