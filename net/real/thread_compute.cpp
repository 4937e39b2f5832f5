#include "net/real/thread_compute.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include "observability/check.hpp"

namespace stagger {

/// Lives in the frame of the run() that waits for it.
struct ThreadCompute::Job {
  std::function<void()> work;
  Waiter done;
  std::exception_ptr failure;
};

ThreadCompute::ThreadCompute(Executor executor)
    : executor_(std::move(executor)), thread_(&ThreadCompute::work_off, this) {}

ThreadCompute::~ThreadCompute() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Task<void> ThreadCompute::run(std::function<void()> work, Duration /*nominal*/) {
  Job job{.work = std::move(work), .done = Waiter(executor_), .failure = nullptr};
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
  if (cancelled) co_await job.done.wait_uninterrupted();
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

void ThreadCompute::work_off() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job& job = *queue_.front();
    queue_.pop_front();
    lock.unlock();
    try {
      job.work();
    } catch (...) {
      job.failure = std::current_exception();
    }
    boost::asio::post(executor_, [&job] { job.done.wake(Wake::signalled); });
    lock.lock();
  }
}

}  // namespace stagger
