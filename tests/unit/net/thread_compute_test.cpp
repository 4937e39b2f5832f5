#include "net/real/thread_compute.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/event.hpp"
#include "tests/unit/net/real_world.hpp"

namespace stagger {
namespace {

using RealCompute = RealWorld;

/// What runs where, in the order in which it happened.
struct Diary {
  std::vector<int> begun;     // by the compute thread
  std::vector<int> finished;  // by the loop
  std::vector<std::thread::id> threads;
  std::string failure;
};

Task<void> compute(Compute& compute, Diary& diary, int number) {
  const std::function<void()> work = [&diary, number] {
    diary.begun.push_back(number);
    diary.threads.push_back(std::this_thread::get_id());
  };
  co_await compute.run(work, 0ns);
  diary.finished.push_back(number);
}

Task<void> compute_failing(Compute& compute, Diary& diary) {
  const std::function<void()> work = [] {
    throw std::runtime_error("bad work");
  };
  try {
    co_await compute.run(work, 0ns);
  } catch (const std::runtime_error& error) {
    diary.failure = error.what();
  }
}

/// Occupies the compute thread until it is released.
Task<void> occupy(Compute& compute, std::atomic<bool>& begun, std::atomic<bool>& release) {
  const std::function<void()> work = [&begun, &release] {
    begun = true;
    begun.notify_all();
    release.wait(false);
  };
  co_await compute.run(work, 0ns);
}

Task<void> cancel_then_release(
    TaskScope& scope, std::atomic<bool>& begun, std::atomic<bool>& release, std::size_t& left) {
  begun.wait(false);
  scope.cancel();
  left = scope.size();
  release = true;
  release.notify_all();
  co_return;
}

TEST_F(RealCompute, runs_on_one_other_thread_in_call_order) {
  Diary diary;
  std::vector<int> numbers;
  for (int number = 0; number < 20; ++number) {
    scope_.spawn("compute", compute(host_.compute, diary, number));
    numbers.push_back(number);
  }
  run();
  EXPECT_EQ(diary.begun, numbers);
  EXPECT_EQ(diary.finished, numbers);
  for (const std::thread::id& thread : diary.threads) {
    EXPECT_EQ(thread, diary.threads.front());
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST_F(RealCompute, carries_exceptions_back_and_goes_on) {
  Diary diary;
  scope_.spawn("fails", compute_failing(host_.compute, diary));
  scope_.spawn("next", compute(host_.compute, diary, 1));
  run();
  EXPECT_EQ(diary.failure, "bad work");
  EXPECT_EQ(diary.finished, std::vector<int>{1});
}

TEST_F(RealCompute, cancel_takes_back_what_has_not_begun_and_waits_for_what_has) {
  Diary diary;
  std::atomic<bool> begun = false;
  std::atomic<bool> release = false;
  std::size_t left = 0;
  TaskScope working(real_.executor(), "working");
  working.spawn("occupies", occupy(host_.compute, begun, release));
  working.spawn("never begins", compute(host_.compute, diary, 1));
  scope_.spawn("cancel", cancel_then_release(working, begun, release, left));
  run();
  EXPECT_EQ(left, 2U);
  EXPECT_EQ(working.size(), 0U);
  EXPECT_EQ(working.failure(), nullptr);
  EXPECT_TRUE(diary.begun.empty());
}

/// A compute thread that keeps nominal times.
class PacedCompute : public RealWorld {
 protected:
  ThreadCompute compute_{real_.executor(), Pace::nominal};
};

Task<void> rest(Compute& compute, Duration nominal, Event& begun) {
  const std::function<void()> work = [] {
  };
  begun.set();
  co_await compute.run(work, nominal);
}

Task<void> cancel_soon(TaskScope& scope, Clock& clock, Event& begun) {
  co_await begun.wait();
  co_await clock.sleep_until(clock.now() + 5ms);  // until the rest has begun, most of the time
  scope.cancel();
}

TEST_F(PacedCompute, does_not_come_back_before_the_nominal_time_is_over) {
  Event begun(real_.executor());
  const TimePoint from = host_.clock.now();
  for (int number = 0; number < 3; ++number)
    scope_.spawn("rests", rest(compute_, 5ms, begun));
  run();
  EXPECT_GE(host_.clock.now() - from, 15ms);
}

TEST_F(PacedCompute, ends_a_rest_early_when_it_is_cancelled) {
  Event begun(real_.executor());
  TaskScope working(real_.executor(), "working");
  working.spawn("rests for a day", rest(compute_, std::chrono::hours(24), begun));
  scope_.spawn("cancel", cancel_soon(working, host_.clock, begun));
  run();
  EXPECT_EQ(working.size(), 0U);
}

}  // namespace
}  // namespace stagger
