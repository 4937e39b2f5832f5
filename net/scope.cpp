#include "net/scope.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "observability/check.hpp"

namespace stagger {

namespace asio = boost::asio;

struct TaskScope::Child {
  std::string name;
  asio::cancellation_signal signal;
};

/// Told by the loop that a task has ended; all of the task's objects are gone by then.
struct TaskScope::Completion {
  TaskScope* scope;
  std::list<std::unique_ptr<Child>>::iterator child;

  void operator()(const std::exception_ptr& failure) const { scope->finished(child, failure); }
};

namespace {

bool is_abort(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

/// The first frame of every task. Cancellation is checked where the engine waits (Waiter), not at
/// every co_await, since a cancelled task must still be able to await its own scopes' join().
Task<void> run_child(Task<void> task) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await asio::post(asio::use_awaitable_t<Executor>());
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) co_return;
  co_await std::move(task);
}

}  // namespace

TaskScope::TaskScope(Executor executor, std::string name)
    : executor_(std::move(executor)), name_(std::move(name)) {}

TaskScope::~TaskScope() {
  CHECK(running_.empty(), "a scope died before its tasks:", name_, running_.front()->name);
}

void TaskScope::spawn(std::string_view name, Task<void> task) {
  if (cancelled_) return;
  running_.push_back(std::make_unique<Child>());
  const auto child = std::prev(running_.end());
  (*child)->name = std::string(name);
  asio::co_spawn(
      executor_,
      run_child(std::move(task)),
      asio::bind_cancellation_slot(
          (*child)->signal.slot(), Completion{.scope = this, .child = child}));
}

void TaskScope::cancel() {
  if (cancelled_) return;
  cancelled_ = true;
  for (const auto& child : running_)
    child->signal.emit(asio::cancellation_type::terminal);
}

void TaskScope::finished(
    std::list<std::unique_ptr<Child>>::iterator child, std::exception_ptr failure) {
  running_.erase(child);
  const bool expected = !failure || (cancelled_ && is_abort(failure));
  if (!expected && !failure_) failure_ = std::move(failure);
  if (!expected) cancel();
  if (!running_.empty()) return;
  for (Waiter* const joiner : std::exchange(joiners_, {}))
    joiner->wake(Wake::signalled);
}

Task<void> TaskScope::join() {
  bool interrupted = false;
  while (!running_.empty()) {
    Waiter waiter(executor_);
    joiners_.push_back(&waiter);
    try {
      if (!interrupted) co_await waiter.wait();
    } catch (const boost::system::system_error&) {
      interrupted = true;
    }
    if (!interrupted) continue;
    cancel();
    co_await waiter.wait_uninterrupted();
  }
  if (failure_) std::rethrow_exception(failure_);
}

std::vector<std::string> TaskScope::running() const {
  std::vector<std::string> names;
  names.reserve(running_.size());
  std::transform(
      running_.begin(), running_.end(), std::back_inserter(names), [](const auto& child) {
        return child->name;
      });
  return names;
}

}  // namespace stagger
