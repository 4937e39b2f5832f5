#include "net/channel.hpp"

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "net/scope.hpp"

namespace stagger {
namespace {

using Token = std::unique_ptr<int>;

class Queue : public testing::Test {
 protected:
  void settle() {
    context_.restart();
    context_.poll();
  }

  boost::asio::io_context context_{1};
  Channel<Token> channel_{context_.get_executor(), 2};
  std::vector<int> received_;
  std::vector<bool> pushed_;
};

Task<void> push_numbers(Channel<Token>& channel, int first, int count, std::vector<bool>& pushed) {
  for (int i = 0; i < count; ++i) {
    Token token = std::make_unique<int>(first + i);
    const bool taken = co_await channel.push(std::move(token));
    pushed.push_back(taken);
  }
}

Task<void> pop_numbers(Channel<Token>& channel, int count, std::vector<int>& received) {
  for (int i = 0; i < count; ++i) {
    const std::optional<Token> token = co_await channel.pop();
    received.push_back(token ? **token : -1);
  }
}

TEST_F(Queue, keeps_order_and_makes_the_pusher_wait_for_room) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("push", push_numbers(channel_, 0, 5, pushed_));
  settle();
  EXPECT_EQ(pushed_.size(), 2U);
  EXPECT_EQ(channel_.size(), channel_.capacity());
  scope.spawn("pop", pop_numbers(channel_, 5, received_));
  settle();
  EXPECT_EQ(received_, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pushed_, std::vector<bool>(5, true));
}

TEST_F(Queue, close_ends_pushers_and_lets_poppers_drain) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("push", push_numbers(channel_, 0, 3, pushed_));
  settle();
  channel_.close();
  settle();
  EXPECT_EQ(pushed_, (std::vector<bool>{true, true, false}));
  scope.spawn("pop", pop_numbers(channel_, 3, received_));
  settle();
  EXPECT_EQ(received_, (std::vector<int>{0, 1, -1}));
}

TEST_F(Queue, close_wakes_a_popper_that_waits) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("pop", pop_numbers(channel_, 1, received_));
  settle();
  channel_.close();
  settle();
  EXPECT_EQ(received_, std::vector<int>{-1});
}

TEST_F(Queue, refuses_without_taking_when_full) {
  EXPECT_TRUE(channel_.try_push(std::make_unique<int>(1)));
  EXPECT_TRUE(channel_.try_push(std::make_unique<int>(2)));
  Token third = std::make_unique<int>(3);
  EXPECT_FALSE(channel_.try_push(std::move(third)));
  // NOLINTNEXTLINE(bugprone-use-after-move): untouched is the promise
  EXPECT_EQ(third ? *third : 0, 3);
}

TEST_F(Queue, cancelled_popper_passes_its_wake_up_to_the_next) {
  // The first popper is cancelled and then woken for a value before it resumes; the second must get
  // the value.
  TaskScope first(context_.get_executor(), "first");
  TaskScope second(context_.get_executor(), "second");
  first.spawn("pop", pop_numbers(channel_, 1, received_));
  settle();
  second.spawn("pop", pop_numbers(channel_, 1, received_));
  settle();
  boost::asio::post(context_, [&first, this] {
    first.cancel();
    EXPECT_TRUE(channel_.try_push(std::make_unique<int>(7)));
  });
  settle();
  EXPECT_EQ(first.size(), 0U);
  EXPECT_EQ(second.size(), 0U);
  EXPECT_EQ(received_, std::vector<int>{7});
}

TEST_F(Queue, cancelled_pusher_has_not_pushed) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("push", push_numbers(channel_, 0, 3, pushed_));
  settle();
  scope.cancel();
  settle();
  EXPECT_EQ(scope.size(), 0U);
  EXPECT_EQ(channel_.size(), 2U);
  EXPECT_EQ(pushed_.size(), 2U);
}

}  // namespace
}  // namespace stagger
