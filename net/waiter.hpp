#pragma once

#include <cstdint>
#include <memory>

#include "net/task.hpp"
#include "net/time.hpp"

/// The one primitive that every wait of the engine is made of.
namespace stagger {

enum class Wake : std::uint8_t { signalled, deadline };

/// A place where one coroutine parks until somebody wakes it.
///
/// For:     Event, Channel, Clock::sleep_until; not for business code.
/// Owner:   the frame of the coroutine that waits.
/// Thread:  the loop.
/// Cancel:  a cancelled wait throws boost::system::system_error(operation_aborted); so does every
/// later one of that task. Failure: none. wake() before wait(), and a second wake(), are harmless:
/// the first reason counts.
class Waiter {
 public:
  explicit Waiter(Executor executor);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Task<Wake> wait();

  /// Waits although the task may be cancelled: for what cannot be taken back once begun (Compute,
  /// TaskScope::join).
  Task<Wake> wait_uninterrupted();

  void wake(Wake reason);

  bool woken() const { return woken_; }

 private:
  friend struct WaiterAccess;  // the initiation, in waiter.cpp
  struct Operation;

  Executor executor_;
  std::unique_ptr<Operation> parked_;
  bool woken_ = false;
  Wake reason_ = Wake::signalled;
};

}  // namespace stagger
