#include "net/real/thread_compute.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include "observability/check.hpp"

namespace stagger {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

TimePoint steady_now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

/// Lives in the frame of the run() that waits for it.
struct ThreadCompute::Job {
  std::function<void()> work;
  Duration nominal;
  Waiter done;
  bool hurried = false;  // under the mutex: ends without a rest
  std::exception_ptr failure;
};

ThreadCompute::ThreadCompute(Executor executor, Pace pace)
    : executor_(std::move(executor)), pace_(pace), thread_(&ThreadCompute::work_off, this) {}

ThreadCompute::~ThreadCompute() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Task<void> ThreadCompute::run(std::function<void()> work, Duration nominal) {
  Job job{
      .work = std::move(work), .nominal = nominal, .done = Waiter(executor_), .failure = nullptr};
  enqueue(job);
  bool cancelled = false;
  try {
    co_await job.done.wait();
  } catch (const boost::system::system_error&) {
    cancelled = true;
  }
  if (cancelled && take_back(job)) {
    throw boost::system::system_error(boost::asio::error::operation_aborted, "compute");
  }
  if (cancelled) {
    hurry(job);
    co_await job.done.wait_uninterrupted();
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadCompute::enqueue(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    CHECK_LT(queue_.size(), jobs_max);
    queue_.push_back(&job);
  }
  changed_.notify_one();
}

/// False when the work has begun.
bool ThreadCompute::take_back(Job& job) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(queue_.begin(), queue_.end(), &job);
  if (place == queue_.end()) return false;
  queue_.erase(place);
  return true;
}

void ThreadCompute::hurry(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    job.hurried = true;
  }
  changed_.notify_one();
}

void ThreadCompute::work_off() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job& job = *queue_.front();
    queue_.pop_front();
    lock.unlock();
    const TimePoint began = steady_now();
    try {
      job.work();
    } catch (...) {
      job.failure = std::current_exception();
    }
    if (pace_ == Pace::nominal) rest(job, began);
    boost::asio::post(executor_, [&job] { job.done.wake(Wake::signalled); });
    lock.lock();
  }
}

/// Sleeps out what is left of the job's nominal time.
void ThreadCompute::rest(const Job& job, TimePoint began) {
  const TimePoint end = pacer_.end_of(began, job.nominal, steady_now());
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, SteadyTime(end.time_since_epoch()), [this, &job] {
      return stopping_ || job.hurried;
    });
  }
  pacer_.ended(steady_now());
}

}  // namespace stagger
