#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "net/compute.hpp"
#include "net/real/pacer.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// How long work takes: `own`, as long as it needs; `nominal`, at least its nominal time, which the
/// thread sleeps out: a processor that computes as fast as somebody said, with the real network.
enum class Pace { own, nominal };

/// The compute thread.
///
/// Owner:   RealHost.
/// Thread:  run() on the loop; work on the one thread. The mutex guards the queue between the two,
/// the only one in net. Cancel:  work that has not begun is taken back; work that has is waited
/// for,
/// but for a rest at its end. Failure: what `work` throws comes out of run(). More than `jobs_max`
/// calls at once are a bug.
class ThreadCompute final : public Compute {
 public:
  static constexpr std::size_t jobs_max = 1024;

  explicit ThreadCompute(Executor executor, Pace pace = Pace::own);

  /// Finishes what is queued, without rests.
  ~ThreadCompute();
  ThreadCompute(const ThreadCompute&) = delete;
  ThreadCompute& operator=(const ThreadCompute&) = delete;

  Task<void> run(std::function<void()> work, Duration nominal) override;

 private:
  struct Job;

  void enqueue(Job& job);
  bool take_back(Job& job);
  void hurry(Job& job);
  void work_off();
  void rest(const Job& job, TimePoint began);

  Executor executor_;
  Pace pace_;
  Pacer pacer_;  // of the compute thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace stagger
