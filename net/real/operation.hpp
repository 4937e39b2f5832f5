#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <boost/system/error_code.hpp>

#include "net/clock.hpp"
#include "net/waiter.hpp"
#include "observability/check.hpp"

namespace stagger {

/// One Asio operation on its way, awaited up to a deadline.
///
/// For:     net/real. The deadline is an argument of the wait, so nothing is raced (`||` costs 25
/// plain waits), and every
///          wait of the engine goes through Waiter.
/// Owner:   the coroutine that started the operation. The handler shares the outcome, since an
/// operation that was given
///          up calls its handler later all the same.
/// Thread:  the loop.
/// Cancel:  wait() throws operation_aborted. Whoever leaves without an outcome cancels or closes
/// the Asio object, after
///          which the operation touches no buffer any more.
/// Failure: error().
template <class... Values>
class Operation {
  struct Outcome {
    Waiter* waiter = nullptr;
    bool done = false;
    boost::system::error_code error;
    std::optional<std::tuple<Values...>> values;
  };

 public:
  explicit Operation(Executor executor)
      : executor_(std::move(executor)), outcome_(std::make_shared<Outcome>()) {}

  struct Handler {
    std::shared_ptr<Outcome> outcome;

    void operator()(boost::system::error_code error, Values... values) const {
      outcome->done = true;
      outcome->error = error;
      outcome->values.emplace(std::move(values)...);
      if (outcome->waiter != nullptr) outcome->waiter->wake(Wake::signalled);
    }
  };

  /// What to pass to the Asio function.
  Handler handler() const { return Handler{outcome_}; }

  /// False when the deadline came first.
  Task<bool> wait_until(Clock& clock, TimePoint deadline) {
    Waiter waiter(executor_);
    const Place place(*outcome_, waiter);
    const Alarm alarm(clock, waiter, deadline);
    co_await waiter.wait();
    co_return outcome_->done;
  }

  Task<void> wait() {
    Waiter waiter(executor_);
    const Place place(*outcome_, waiter);
    co_await waiter.wait();
  }

  boost::system::error_code error() const { return outcome_->error; }

  /// REQUIRES that the outcome is there.
  template <std::size_t Index = 0>
  auto& value() {
    auto& values = outcome_->values;
    CHECK(values.has_value(), "the operation is still on its way");
    return std::get<Index>(*values);
  }

 private:
  struct Place {
    Outcome& outcome;

    Place(Outcome& own, Waiter& waiter) : outcome(own) {
      outcome.waiter = &waiter;
      if (outcome.done) waiter.wake(Wake::signalled);
    }

    ~Place() { outcome.waiter = nullptr; }

    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
  };

  Executor executor_;
  std::shared_ptr<Outcome> outcome_;
};

}  // namespace stagger
