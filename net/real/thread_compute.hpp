#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "net/compute.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// The compute thread.
///
/// Owner:   RealHost.
/// Thread:  run() on the loop; work on the one thread. The mutex guards the queue between the two,
/// the only one in net. Cancel:  work that has not begun is taken back; work that has is waited
/// for. Failure: what `work` throws comes out of run(). More than `jobs_max` calls at once are a
/// bug.
class ThreadCompute final : public Compute {
 public:
  static constexpr std::size_t jobs_max = 1024;

  explicit ThreadCompute(Executor executor);

  /// Finishes what is queued.
  ~ThreadCompute();
  ThreadCompute(const ThreadCompute&) = delete;
  ThreadCompute& operator=(const ThreadCompute&) = delete;

  Task<void> run(std::function<void()> work, Duration nominal) override;

 private:
  struct Job;

  void enqueue(Job& job);
  bool take_back(Job& job);
  void work_off();

  Executor executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace stagger
