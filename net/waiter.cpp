#include "net/waiter.hpp"

#include <utility>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "observability/check.hpp"

namespace stagger {

namespace asio = boost::asio;
using boost::system::error_code;

/// What resumes the parked coroutine. The loop counts it as work, so that it does not end while
/// somebody waits.
struct Waiter::Operation {
  asio::any_completion_handler<void(error_code, Wake)> handler;
  asio::any_io_executor working;

  /// Bound to its outcome: the form in which it is posted.
  struct Completion {
    asio::any_completion_handler<void(error_code, Wake)> handler;
    error_code error;
    Wake reason;

    void operator()() { std::move(handler)(error, reason); }
  };

  /// The coroutine resumes on a later turn of the loop, never inside the call that woke it.
  static void complete(std::unique_ptr<Operation> operation, error_code error, Wake reason) {
    auto slot = asio::get_associated_cancellation_slot(operation->handler);
    if (slot.is_connected()) slot.clear();
    const asio::any_io_executor executor = std::move(operation->working);
    asio::post(
        executor,
        Completion{.handler = std::move(operation->handler), .error = error, .reason = reason});
  }
};

struct WaiterAccess {
  /// The initiation: stores the handler in the waiter. A function object, since g++ 12 destroys a
  /// capturing lambda twice here.
  struct Park {
    Waiter* waiter;
    bool interruptible;

    template <class Handler>
    void operator()(Handler&& handler) const {
      park(*waiter, std::forward<Handler>(handler), interruptible);
    }
  };

  struct Cancel {
    Waiter* waiter;

    void operator()(asio::cancellation_type /*type*/) const {
      Waiter::Operation::complete(
          std::move(waiter->parked_), asio::error::operation_aborted, waiter->reason_);
    }
  };

  static void park(
      Waiter& waiter,
      asio::any_completion_handler<void(error_code, Wake)> handler,
      bool interruptible) {
    CHECK(!waiter.parked_, "two tasks wait on one waiter");
    auto slot = asio::get_associated_cancellation_slot(handler);
    waiter.parked_ = std::make_unique<Waiter::Operation>(Waiter::Operation{
        .handler = std::move(handler),
        .working = asio::prefer(waiter.executor_, asio::execution::outstanding_work.tracked)});
    if (interruptible && slot.is_connected()) slot.assign(Cancel{&waiter});
  }

  static Task<Wake> parked(Waiter& waiter, bool interruptible) {
    return asio::async_initiate<const asio::use_awaitable_t<Executor>, void(error_code, Wake)>(
        Park{.waiter = &waiter, .interruptible = interruptible}, asio::use_awaitable_t<Executor>());
  }
};

Waiter::Waiter(Executor executor) : executor_(std::move(executor)) {}

Waiter::~Waiter() = default;

Task<Wake> Waiter::wait() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted, "wait");
  }
  if (woken_) co_return reason_;
  co_return co_await WaiterAccess::parked(*this, true);
}

Task<Wake> Waiter::wait_uninterrupted() {
  if (woken_) co_return reason_;
  co_return co_await WaiterAccess::parked(*this, false);
}

void Waiter::wake(Wake reason) {
  if (woken_) return;
  woken_ = true;
  reason_ = reason;
  if (parked_) Operation::complete(std::move(parked_), {}, reason);
}

}  // namespace stagger
