#pragma once

#include <exception>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/task.hpp"
#include "net/waiter.hpp"

namespace stagger {

/// Owns tasks that run beside each other. Nothing in the engine is detached: every task is in a
/// scope.
///
/// For:     components with background work (Server, Session, Client, Worker).
/// Owner:   the component; its destructor CHECKs that all tasks have ended, so the component's stop
/// path awaits join(). Thread:  the loop. Cancel:  cancel() cancels every task and every later
/// spawn; join() cannot be interrupted before the tasks have ended.
///          In a cancelled task every wait throws (Waiter), while awaiting coroutines, and so
///          join(), still works.
/// Failure: the first exception other than operation_aborted-after-cancel cancels the siblings and
/// is rethrown by join().
class TaskScope {
 public:
  TaskScope(Executor executor, std::string name);
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  /// Starts `task` on a later turn of the loop. After cancel() the task is dropped without having
  /// run.
  void spawn(std::string_view name, Task<void> task);

  void cancel();

  /// Waits until no task is left, then rethrows the first failure. May be called again. A cancelled
  /// caller still waits for the tasks (after cancelling them).
  Task<void> join();

  bool cancelled() const { return cancelled_; }

  /// What join() would rethrow, for owners that are no coroutine (main, a simulation's driver).
  std::exception_ptr failure() const { return failure_; }

  std::size_t size() const { return running_.size(); }

  /// Names of what still runs, for "who is awaited" messages.
  std::vector<std::string> running() const;

 private:
  struct Child;
  struct Completion;

  void finished(std::list<std::unique_ptr<Child>>::iterator child, std::exception_ptr failure);

  Executor executor_;
  std::string name_;
  std::list<std::unique_ptr<Child>> running_;
  std::vector<Waiter*> joiners_;
  std::exception_ptr failure_;
  bool cancelled_ = false;
};

}  // namespace stagger
