#include "net/scope.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "net/event.hpp"

namespace stagger {
namespace {

class Scope : public testing::Test {
 protected:
  void settle() {
    context_.restart();
    context_.poll();
  }

  boost::asio::io_context context_{1};
  Event never_{context_.get_executor()};
  Event gate_{context_.get_executor()};
  std::vector<std::string> events_;
};

Task<void> wait_for(Event& event) {
  co_await event.wait();
}

Task<void> note(std::vector<std::string>& events, std::string text) {
  events.push_back(std::move(text));
  co_return;
}

Task<void> fail_after(Event& event, std::string text) {
  co_await event.wait();
  throw std::runtime_error(text);
}

/// Holds on to `token` while it waits.
Task<void> hold(Event& event, std::shared_ptr<int> token) {
  co_await event.wait();
  *token = 1;
}

Task<void> join_and_note(TaskScope& scope, std::vector<std::string>& events) {
  try {
    co_await scope.join();
    events.emplace_back("joined");
  } catch (const std::runtime_error& error) {
    events.emplace_back(error.what());
  }
}

/// Insists on finishing its own work when it is cancelled.
Task<void> clean_up_uninterrupted(
    Event& never, Executor executor, Waiter& permission, std::vector<std::string>& events) {
  TaskScope inner(executor, "inner");
  inner.spawn("inner task", wait_for(never));
  co_await inner.join();
  events.emplace_back("inner tasks ended");
  co_await permission.wait_uninterrupted();
  events.emplace_back("cleaned up");
}

TEST_F(Scope, starts_tasks_on_a_later_turn) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("note", note(events_, "ran"));
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(scope.running(), std::vector<std::string>{"note"});
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"ran"});
  EXPECT_EQ(scope.size(), 0U);
}

TEST_F(Scope, first_failure_cancels_the_siblings_and_is_rethrown_by_join) {
  TaskScope scope(context_.get_executor(), "test");
  TaskScope outer(context_.get_executor(), "outer");
  const auto token = std::make_shared<int>(0);
  scope.spawn("sibling", hold(never_, token));
  scope.spawn("first", fail_after(gate_, "first failure"));
  scope.spawn("second", fail_after(gate_, "second failure"));
  outer.spawn("join", join_and_note(scope, events_));
  settle();
  EXPECT_EQ(scope.size(), 3U);
  EXPECT_EQ(token.use_count(), 2);
  gate_.set();
  settle();
  EXPECT_EQ(scope.size(), 0U);
  EXPECT_EQ(token.use_count(), 1);  // the cancelled task's frame is gone
  EXPECT_EQ(events_, std::vector<std::string>{"first failure"});
  outer.spawn("join again", join_and_note(scope, events_));
  settle();
  EXPECT_EQ(events_.back(), "first failure");
  EXPECT_EQ(events_.size(), 2U);
}

TEST_F(Scope, cancelling_is_no_failure) {
  TaskScope scope(context_.get_executor(), "test");
  TaskScope outer(context_.get_executor(), "outer");
  scope.spawn("waits", wait_for(never_));
  settle();
  scope.cancel();
  outer.spawn("join", join_and_note(scope, events_));
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"joined"});
}

TEST_F(Scope, drops_what_is_spawned_after_cancel) {
  TaskScope scope(context_.get_executor(), "test");
  scope.cancel();
  const auto token = std::make_shared<int>(0);
  scope.spawn("never runs", hold(gate_, token));
  scope.spawn("never runs", note(events_, "ran"));
  settle();
  EXPECT_EQ(scope.size(), 0U);
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_TRUE(events_.empty());
}

TEST_F(Scope, task_cancelled_before_its_first_turn_never_runs) {
  TaskScope scope(context_.get_executor(), "test");
  scope.spawn("never runs", note(events_, "ran"));
  scope.cancel();
  settle();
  EXPECT_EQ(scope.size(), 0U);
  EXPECT_TRUE(events_.empty());
}

TEST_F(Scope, cancelled_joiner_cancels_its_tasks_and_still_waits_for_them) {
  TaskScope outer(context_.get_executor(), "outer");
  Waiter permission(context_.get_executor());
  outer.spawn(
      "owner", clean_up_uninterrupted(never_, context_.get_executor(), permission, events_));
  settle();
  outer.cancel();
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"inner tasks ended"});
  EXPECT_EQ(outer.size(), 1U);
  permission.wake(Wake::signalled);
  settle();
  EXPECT_EQ(events_.back(), "cleaned up");
  EXPECT_EQ(outer.size(), 0U);
}

TEST_F(Scope, joins_at_once_when_nothing_runs) {
  TaskScope scope(context_.get_executor(), "test");
  TaskScope outer(context_.get_executor(), "outer");
  outer.spawn("join", join_and_note(scope, events_));
  settle();
  EXPECT_EQ(events_, std::vector<std::string>{"joined"});
}

TEST(ScopeDeathTest, dying_before_its_tasks_is_a_bug_that_names_the_task) {
  boost::asio::io_context context(1);
  EXPECT_DEATH(
      {
        Event never(context.get_executor());
        TaskScope scope(context.get_executor(), "owner");
        scope.spawn("read_requests", wait_for(never));
      },
      "owner read_requests");
}

}  // namespace
}  // namespace stagger
